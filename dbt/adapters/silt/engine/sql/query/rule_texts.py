"""Finds forbidden parts of a table's rules (a default, a condition, a generated column)."""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate

from dbt.adapters.silt.engine.sql.spans import Tokens, closing
from dbt.adapters.silt.engine.sql.tokens import Kind, tokenize

DETERMINISTIC = frozenset(
    """
    abs acos acosh add_months aes_decrypt aggregate and any approx_top_k_estimate array array_append
    array_compact array_contains array_distinct array_except array_insert array_intersect array_join array_max
    array_min array_position array_prepend array_remove array_repeat array_size array_sort array_union
    arrays_overlap arrays_zip ascii asin asinh assert_true atan atan2 atanh base64 between bigint bin binary
    bit_count bit_get bit_length bitmap_bit_position bitmap_bucket_number bitmap_count boolean bround btrim
    cardinality case cast cbrt ceil ceiling char char_length character_length chr coalesce collate collation
    concat concat_ws contains conv convert_timezone cos cosh cot crc32 csc curdate current_date current_time
    current_timestamp current_timezone current_user date date_add date_diff date_format date_from_unix_date
    date_part date_sub date_trunc dateadd datediff datepart day dayname dayofmonth dayofweek dayofyear decimal
    decode degrees div double e element_at elt encode endswith equal_null exists exp expm1 extract factorial
    filter find_in_set flatten float floor forall format_number format_string from_base32 from_csv from_json
    from_unixtime from_utc_timestamp get get_json_object getbit greatest hash hex hll_sketch_estimate
    hll_union hmac hour hypot if ifnull ilike in initcap instr int is_valid_utf8 is_valid_variant
    is_variant_null isnan isnotnull isnull jaro_winkler_similarity json_array_length json_object_keys
    kll_sketch_get_n_bigint kll_sketch_get_n_double kll_sketch_get_n_float kll_sketch_get_quantile_bigint
    kll_sketch_get_quantile_double kll_sketch_get_quantile_float kll_sketch_get_rank_bigint
    kll_sketch_get_rank_double kll_sketch_get_rank_float kll_sketch_merge_bigint kll_sketch_merge_double
    kll_sketch_merge_float kll_sketch_to_string_bigint kll_sketch_to_string_double kll_sketch_to_string_float
    last_day lcase least left len length levenshtein like ln localtime localtimestamp locate log log10 log1p
    log2 lower lpad ltrim luhn_check make_date make_dt_interval make_interval make_time make_timestamp
    make_timestamp_ltz make_timestamp_ntz make_valid_utf8 make_ym_interval map map_concat map_contains_key
    map_entries map_filter map_from_arrays map_from_entries map_keys map_values map_zip_with mask md5 minute
    mod month monthname months_between named_struct nanvl negative next_day not now nullif nullifzero nvl nvl2
    octet_length or overlay parse_json parse_url pi pmod position positive pow power printf quarter quote
    radians raise_error reduce regexp regexp_count regexp_extract regexp_extract_all regexp_instr regexp_like
    regexp_replace regexp_substr repeat replace reverse right rint rlike round rpad rtrim schema_of_csv
    schema_of_json schema_of_variant sec second sentences sequence session_user sha sha1 sha2 shiftleft
    shiftright shiftrightunsigned sign signum sin sinh size slice smallint some sort_array soundex space split
    split_part sqrt st_asbinary st_geogfromwkb st_geomfromwkb st_setsrid st_srid startswith str_to_map string
    struct substr substring substring_index tan tanh theta_difference theta_intersection theta_sketch_estimate
    theta_union time time_bucket time_diff time_from_micros time_from_millis time_from_seconds time_to_micros
    time_to_millis time_to_seconds time_trunc timediff timestamp timestamp_micros timestamp_millis
    timestamp_nanos timestamp_seconds timestampadd timestampdiff tinyint to_base32 to_binary to_char to_csv
    to_date to_json to_number to_time to_timestamp to_timestamp_ltz to_timestamp_ntz to_unix_timestamp
    to_utc_timestamp to_varchar to_variant_object to_xml transform transform_keys transform_values translate
    trim trunc try_add try_aes_decrypt try_cast try_divide try_element_at try_make_interval try_make_timestamp
    try_make_timestamp_ltz try_make_timestamp_ntz try_mod try_multiply try_parse_json try_parse_url
    try_subtract try_to_binary try_to_date try_to_number try_to_time try_to_timestamp try_url_decode
    try_validate_utf8 try_variant_array_append try_variant_get try_variant_insert try_variant_set
    tuple_difference_double tuple_difference_integer tuple_difference_theta_double
    tuple_difference_theta_integer tuple_intersection_double tuple_intersection_integer
    tuple_intersection_theta_double tuple_intersection_theta_integer tuple_sketch_estimate_double
    tuple_sketch_estimate_integer tuple_sketch_summary_double tuple_sketch_summary_integer
    tuple_sketch_theta_double tuple_sketch_theta_integer tuple_union_double tuple_union_integer
    tuple_union_theta_double tuple_union_theta_integer typeof ucase unbase64 unhex unix_date unix_micros
    unix_millis unix_nanos unix_seconds unix_timestamp upper url_decode url_encode user validate_utf8
    variant_array_append variant_delete variant_get variant_insert variant_set variant_strip_nulls vector_avg
    vector_cosine_similarity vector_inner_product vector_l2_distance vector_norm vector_normalize vector_sum
    weekday weekofyear when width_bucket xpath xpath_boolean xpath_double xpath_float xpath_int xpath_long
    xpath_number xpath_short xpath_string xxhash64 year zeroifnull zip_with
    """.split()
)
"""They return the same value for a row throughout a statement, and access nothing outside of it."""

OF_CHANCE = frozenset("aes_encrypt rand randn random randstr shuffle uniform uuid".split())
"""They differ from row to row: a default may call them."""

REFUSED = frozenset(
    """
    any_value approx_count_distinct approx_percentile approx_top_k approx_top_k_accumulate
    approx_top_k_combine array_agg avg bit_and bit_or bit_xor bitmap_and_agg bitmap_construct_agg
    bitmap_or_agg bool_and bool_or collations collect_list collect_set collect_union corr count count_if
    count_min_sketch counter_diff covar_pop covar_samp cume_dist current_catalog current_database current_path
    current_schema dense_rank every explode explode_outer first first_value from_avro from_protobuf from_xml
    grouping grouping_id histogram_numeric hll_sketch_agg hll_union_agg inline inline_outer
    input_file_block_length input_file_block_start input_file_name java_method json_tuple kll_merge_agg_bigint
    kll_merge_agg_double kll_merge_agg_float kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float
    kurtosis lag last last_value lead listagg max max_by mean measure median min min_by mode
    monotonically_increasing_id nth_value ntile percent_rank percentile percentile_approx percentile_cont
    percentile_disc posexplode posexplode_outer python_worker_logs range rank reflect regr_avgx regr_avgy
    regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy row_number schema_of_avro
    schema_of_variant_agg schema_of_xml session_window skewness spark_partition_id sql_keywords stack std
    stddev stddev_pop stddev_samp string_agg sum theta_intersection_agg theta_sketch_agg theta_union_agg
    to_avro to_protobuf try_avg try_reflect try_sum tuple_intersection_agg_double
    tuple_intersection_agg_integer tuple_sketch_agg_double tuple_sketch_agg_integer tuple_union_agg_double
    tuple_union_agg_integer var_pop var_samp variance variant_explode variant_explode_outer version window
    window_time
    """.split()
)
"""They run code, read files, reveal facts about the session, or need several rows."""

RUNS_CODE = frozenset("from_protobuf java_method reflect to_protobuf try_reflect".split())
"""Subset of the refused functions: they call methods of any Java class, or load a class."""

WITH_OPTIONS_THAT_OPEN_FILES = {"from_avro": 2, "from_xml": 2, "schema_of_avro": 1, "schema_of_xml": 1}
"""Subset of the refused functions: their options, which follow so many arguments, can name files."""


_STARTS = frozenset(("WITH", "FROM", "VALUES", "TABLE", "MAP", "REDUCE"))
_AFTER_A_NAME = frozenset(") , . = == <=> <> != < > <= >= !< !> / % & | ^ || [ ::".split())
_BEFORE_PARENTHESES = frozenset(
    "AND OR NOT IN THEN ELSE WHEN CASE BETWEEN LIKE ILIKE RLIKE REGEXP ANY SOME ALL FROM FOR PLACING DIV ESCAPE BOTH "
    "LEADING TRAILING IS".split()
)
_TYPES = frozenset(("CHARACTER", "VARCHAR", "DEC", "NUMERIC", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ"))


_DEEPEST = 100
_LONGEST = 5_000
"""Spark's parser needs seconds, and then too much of its stack, for a text far beyond these bounds."""


@lru_cache(maxsize=1024)
def problem(text: str, with_chance: bool = False) -> str | None:
    """Returns the forbidden part of a rule's text, if any.

    Args:
        with_chance: whether it may differ from row to row, as a default may.

    Raises:
        StatementSyntaxError: as raised by `tokenize`.
    """
    tokens = tokenize(f"({text}\n)")
    if closing(tokens, 0) != len(tokens) - 2:
        return "parentheses that do not match"
    if len(tokens) > _LONGEST or _depth(tokens) > _DEEPEST:
        return f"more than {_DEEPEST} nested parentheses, or more than {_LONGEST} words"
    allowed = DETERMINISTIC | OF_CHANCE if with_chance else DETERMINISTIC
    return next((found for at in range(len(tokens)) if (found := _problem_at(tokens, at, allowed))), None)


def _depth(tokens: Tokens) -> int:
    depths = accumulate((token.word == "(") - (token.word == ")") for token in tokens)
    return max(depths, default=0)


def _problem_at(tokens: Tokens, at: int, allowed: frozenset[str]) -> str | None:
    token = tokens[at]
    if token.word in ("SELECT", "USING"):
        return "a query"
    if token.word == "(":
        return _query(tokens, at)
    if token.is_identifier and tokens[at + 1].word == "(":
        return _call(tokens, at, allowed)
    if token.kind is Kind.DOUBLE_QUOTED and tokens[at + 1].word == "(":
        return f"the function {token.text}"
    return None


def _query(tokens: Tokens, at: int) -> str | None:
    """Returns "a query" if a query begins after the parenthesis; a column may have the name of its first word."""
    first, following = tokens[at + 1], tokens[at + 2] if at + 2 < len(tokens) else tokens[-1]
    if first.word not in _STARTS or following.word in _AFTER_A_NAME:
        return None
    # A script of MAP and REDUCE also contains the word USING.
    if first.word in ("MAP", "REDUCE") or (first.word == "FROM" and tokens[at - 1].word == "TRIM"):
        return None
    return "a query"


def _call(tokens: Tokens, at: int, allowed: frozenset[str]) -> str | None:
    name = tokens[at].identifier.lower()
    if tokens[at - 1].word == ".":
        prefix = [each.identifier.lower() for each in tokens[max(0, at - 4) : at - 1 : 2] if each.is_identifier]
        return None if prefix == ["system", "builtin"] and name in allowed else f"the function `{name}` of a schema"
    if name in allowed or tokens[at].word in _BEFORE_PARENTHESES or _is_type(tokens, at):
        return None
    return f"the function `{name}`"


def _is_type(tokens: Tokens, at: int) -> bool:
    inside = tokens[at + 2 : closing(tokens, at + 1)]
    return tokens[at].word in _TYPES and all(each.kind is Kind.NUMBER or each.word == "," for each in inside)


def one_line(text: str) -> str:
    """Returns an expression for a message: on a single line, without comments; strings in it keep their escapes.

    Raises:
        StatementSyntaxError: as raised by `tokenize`.
    """
    tokens = tokenize(text)
    shown, end = [], tokens[0].start
    for token in tokens[:-1]:
        gap = text[end : token.start]
        shown += [gap if gap.strip(" ") == "" else " ", token.text.replace("\n", "\\n")]
        end = token.end
    return "".join(shown)
