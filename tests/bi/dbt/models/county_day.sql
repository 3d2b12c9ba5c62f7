{{ config(materialized='incremental', unique_key='county_day') }}
select county || ' ' || window_end::date as county_day, county, window_end, entered, lower_95, upper_95
from {{ source('releases', 'confirmed_14d') }}
{% if is_incremental() %}
where window_end > (select max(window_end) from {{ this }})
{% endif %}
