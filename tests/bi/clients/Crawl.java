import java.sql.*;
import java.util.*;

/** What a JDBC tool does when it is pointed at a database: walk the metadata, then query. Prints one JSON object. */
public class Crawl {
    static String text(String value) {
        return value == null ? "null" : "\"" + value.replace("\\", "\\\\").replace("\"", "\\\"") + "\"";
    }

    public static void main(String[] arguments) throws SQLException {
        StringBuilder out = new StringBuilder("{");
        try (Connection connection = DriverManager.getConnection(arguments[0])) {
            DatabaseMetaData metadata = connection.getMetaData();
            out.append("\"driver\": ").append(text(metadata.getDriverVersion()));
            StringJoiner schemas = new StringJoiner(", ", "[", "]");
            try (ResultSet rows = metadata.getSchemas()) {
                while (rows.next()) schemas.add(text(rows.getString("TABLE_SCHEM")));
            }
            out.append(", \"schemas\": ").append(schemas);
            StringJoiner tables = new StringJoiner(", ", "{", "}");
            try (ResultSet rows = metadata.getTables(null, "dp_release", "%", new String[] {"TABLE", "VIEW"})) {
                while (rows.next()) tables.add(text(rows.getString("TABLE_NAME")) + ": " + text(rows.getString("REMARKS")));
            }
            out.append(", \"tables\": ").append(tables);
            StringJoiner columns = new StringJoiner(", ", "[", "]");
            try (ResultSet rows = metadata.getColumns(null, "dp_release", "confirmed_14d", "%")) {
                while (rows.next()) {
                    columns.add("[" + text(rows.getString("COLUMN_NAME")) + ", " + text(JDBCType.valueOf(rows.getInt("DATA_TYPE")).getName())
                        + ", " + rows.getInt("NULLABLE") + ", " + text(rows.getString("REMARKS")) + "]");
                }
            }
            out.append(", \"columns\": ").append(columns);
            TreeMap<Integer, String> key = new TreeMap<>();
            try (ResultSet rows = metadata.getPrimaryKeys(null, "dp_release", "confirmed_14d")) {
                while (rows.next()) key.put(rows.getInt("KEY_SEQ"), text(rows.getString("COLUMN_NAME")));
            }
            out.append(", \"key\": ").append(key.values());
            long count = 0;
            double sum = 0;
            try (PreparedStatement query = connection.prepareStatement(
                    "SELECT window_end, entered, std_error FROM dp_release.confirmed_14d WHERE county = ? AND window_end > ? ORDER BY window_end")) {
                query.setString(1, "Tainan");
                query.setTimestamp(2, Timestamp.valueOf("2000-01-01 00:00:00"));
                try (ResultSet rows = query.executeQuery()) {
                    while (rows.next()) {
                        count++;
                        sum += rows.getDouble(2);
                        rows.getTimestamp(1);
                    }
                }
            }
            out.append(", \"rows\": ").append(count).append(", \"sum\": ").append(sum);
        }
        System.out.println(out.append("}"));
    }
}
