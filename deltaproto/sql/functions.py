"""The names of Spark SQL's built-in functions, and their return types as far as known."""

from __future__ import annotations

NO_ROUTINE = "UNRESOLVED_ROUTINE"
"""the error class when Spark does not have a function"""

_TYPED = {
    "boolean": """
        array_contains arrays_overlap contains endswith equal_null exists forall ilike is_valid_utf8
        is_valid_variant is_variant_null isnan isnotnull isnull like luhn_check map_contains_key
        regexp regexp_like rlike startswith xpath_boolean
        """,
    "integer": """
        ascii bit_count bit_length cardinality char_length character_length crc32 date_diff datediff
        day dayofmonth dayofweek dayofyear find_in_set hour instr json_array_length len length
        levenshtein locate minute month octet_length position quarter regexp_count regexp_instr size
        unix_date weekday weekofyear year
        """,
    "long": """
        monotonically_increasing_id unix_micros unix_millis unix_seconds unix_timestamp xxhash64
        """,
    "double": """
        acos acosh asin asinh atan atan2 atanh cbrt cos cosh cot csc degrees e exp expm1 hypot ln
        log log10 log1p log2 months_between pi pow power radians rand randn random
        rint sec sin sinh
        sqrt tan tanh
        """,
    "string": """
        base64 bin btrim char chr concat_ws conv current_catalog current_database current_schema
        current_timezone current_user date_format dayname format_number format_string from_unixtime
        get_json_object hex initcap input_file_name lcase left lower lpad ltrim md5 monthname printf
        regexp_extract regexp_replace regexp_substr replace right rpad rtrim sentences session_user
        sha sha1 sha2 soundex space split_part substr substring substring_index to_char to_csv
        to_json to_varchar translate trim typeof ucase upper url_decode url_encode user uuid version
        """,
    "date": """
        add_months curdate current_date date_add date_from_unix_date date_sub last_day make_date
        next_day to_date trunc
        """,
    "timestamp": """
        current_timestamp date_trunc from_utc_timestamp now timestamp_micros timestamp_millis
        timestamp_seconds to_timestamp to_timestamp_ltz to_utc_timestamp
        """,
    "timestamp_ntz": "localtimestamp make_timestamp_ntz to_timestamp_ntz",
    "binary": "aes_encrypt encode to_binary unbase64 unhex",
    "variant": "parse_json to_variant_object",
}
RETURNS = {name: kind for kind, names in _TYPED.items() for name in names.split()}
"""function name to its return type, if independent of the arguments"""

NON_DETERMINISTIC = frozenset(
    """
    monotonically_increasing_id rand randn random randstr shuffle spark_partition_id uniform uuid
    input_file_name input_file_block_length input_file_block_start
    """.split()  # noqa: SIM905
)
AGGREGATES = frozenset(
    """
    any any_value approx_count_distinct approx_percentile approx_top_k array_agg avg bit_and bit_or
    bit_xor bool_and bool_or collect_list collect_set corr count count_if count_min_sketch covar_pop
    covar_samp every first first_value grouping grouping_id histogram_numeric kurtosis last
    last_value listagg max max_by mean median min min_by mode percentile percentile_approx
    percentile_cont percentile_disc regr_count skewness some std stddev stddev_pop stddev_samp
    schema_of_variant_agg measure string_agg sum try_avg try_sum var_pop var_samp variance
    """.split()  # noqa: SIM905
)
GENERATORS = frozenset(
    """
    collations explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer
    python_worker_logs sql_keywords stack variant_explode variant_explode_outer
    """.split()  # noqa: SIM905
)
_OTHERS = """
    abs aes_decrypt aggregate and array array_append array_compact array_distinct array_except
    array_insert array_intersect array_join array_max array_min array_position array_prepend
    array_remove array_repeat array_size array_sort array_union arrays_zip assert_true between
    bigint binary bit_get bitmap_bit_position bitmap_bucket_number bitmap_count boolean bround case
    cast ceil ceiling coalesce collate collation concat convert_timezone current_path current_time
    date date_part dateadd datepart decimal decode div double element_at elt extract factorial
    filter flatten float floor from_avro from_csv from_json from_protobuf from_xml get getbit
    greatest hash if ifnull in int java_method json_object_keys least make_dt_interval make_interval
    make_time make_timestamp make_timestamp_ltz make_valid_utf8 make_ym_interval map map_concat
    map_entries map_filter map_from_arrays map_from_entries map_keys map_values map_zip_with mask
    mod named_struct nanvl negative not nullif nullifzero nvl nvl2 or overlay parse_url pmod
    positive quote raise_error range reduce reflect regexp_extract_all repeat reverse round
    schema_of_avro schema_of_csv schema_of_json schema_of_variant schema_of_xml second sequence
    shiftleft shiftright shiftrightunsigned sign signum slice smallint sort_array split
    st_asbinary st_geogfromwkb st_geomfromwkb st_setsrid st_srid str_to_map string struct time
    time_bucket time_diff time_from_micros time_from_millis time_from_seconds time_to_micros
    time_to_millis time_to_seconds time_trunc timestamp tinyint to_avro to_number to_protobuf
    to_time to_unix_timestamp to_xml transform transform_keys transform_values try_add
    try_aes_decrypt try_divide try_element_at try_make_interval try_make_timestamp
    try_make_timestamp_ltz try_make_timestamp_ntz try_mod try_multiply try_parse_json try_parse_url
    try_reflect try_subtract try_to_binary try_to_date try_to_number try_to_time try_to_timestamp
    try_url_decode try_validate_utf8 try_variant_get validate_utf8 variant_get when width_bucket
    window window_time session_window xpath xpath_double xpath_float xpath_int xpath_long
    xpath_number xpath_short xpath_string zeroifnull zip_with timestampadd timestampdiff date_bucket
    row_number rank dense_rank percent_rank cume_dist ntile lag lead nth_value
    """
BUILT_IN = frozenset({*RETURNS, *_OTHERS.split()}) | NON_DETERMINISTIC | AGGREGATES | GENERATORS
"""the names of Spark's built-in functions, except sketch functions"""
_FAMILIES = ("approx_top_k_", "bitmap_", "hll_", "kll_", "regr_", "theta_", "tuple_", "vector_")


def is_built_in(name: str) -> bool:
    """Return True if Spark has a built-in function of this name (lowercase)."""
    return name in BUILT_IN or name.startswith(_FAMILIES)
