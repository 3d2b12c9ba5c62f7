"""SQLAlchemy and pandas: find the tables, read one, and say what became of its types."""

import json
import os

import pandas as pd
import sqlalchemy as sa

engine = sa.create_engine(os.environ["RELEASE_URL"])
inspector = sa.inspect(engine)
frame = pd.read_sql_table("confirmed_14d", engine, schema="dp_release")
total = pd.read_sql("SELECT window_end, state FROM dp_release.active ORDER BY window_end", engine, index_col="window_end")
print(
    json.dumps(
        {
            "tables": sorted(inspector.get_table_names("dp_release")),
            "views": sorted(inspector.get_view_names("dp_release")),
            "key": inspector.get_pk_constraint("confirmed_14d", "dp_release")["constrained_columns"],
            "comment": inspector.get_table_comment("confirmed_14d", "dp_release")["text"],
            "column_comments": {one["name"]: one["comment"] for one in inspector.get_columns("confirmed_14d", "dp_release")},
            "dtypes": {name: str(kind) for name, kind in frame.dtypes.items()},
            "nulls": int(frame.isna().sum().sum()),
            "rows": len(frame),
            "sum": float(frame["entered"].sum()),
            "pivot": list(frame.pivot_table(index="window_end", columns="county", values="entered").shape),
            "weekly": len(total["state"].resample("7D").mean()),
        }
    )
)
