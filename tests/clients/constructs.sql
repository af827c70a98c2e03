-- True of the row that is kept, false of the one that is not: see test_real_constructs.py.
id = 6
id == 6
id <=> 6
id != -7
id <> -7
id > 0 and price > 0
id > 0 or price > 100
not id < 0
!(id < 0)
id is not null and id > 0
id between 0 and 10
id in (5, 6)
word in ('Abc', 'd')
word like 'A%'
word not like 'z%'
word like 'A%' escape '/'
word ilike 'a%'
word rlike '^A'
word regexp '^A'
id + 1 > 0
id - 1 > 0
id * 2 > 0
id / 2 > 0
id % 4 = 2
id div 2 = 3
word || 'x' = 'Abcx'
(id & 2) = 2
(id | 1) = 7
(id ^ 1) = 7
~id = -7
-id < 0
(id << 1) = 12
case when id > 0 then true else false end
case id when 6 then true else false end
cast(id as int) > 0
cast(id as string) = '6'
cast(id as double) > 0
cast(id as bigint) > 0
cast(price as decimal(10,2)) > 0
cast(day as timestamp) > cast('2000-01-01' as timestamp)
cast(at as date) > cast('2000-01-01' as date)
try_cast(word as int) is null and id > 0
id::int > 0
word = "Abc"
word = 'Abc'
word != 'it\'s' and id > 0
word != 'it''s' and id > 0
price > 0.5
price > 1e-3
price > 0.5D
id > 0L
price > 0.5BD
id > 0S
day > date'2000-01-01'
day > DATE '2000-01-01'
at > timestamp'2000-01-01 00:00:00'
day > '2000-01-01'
at > '2000-01-01'
at + interval 1 day > timestamp'2000-01-02 00:00:00'
at > timestamp'2000-01-01 00:00:00' - interval '1' day
id > 0 or word = X'41'
flag = true
flag
flag is true
flag is not false
id is distinct from -7
id = 6 or word = null
`id` > 0
s.x > 0
attrs['k'] = 'v'
tags[0] = 'a'
exists(tags, t -> t = 'a')
ID > 0
((id) > (0))
id > 0 /* positive */
(id > 0 and (price > 0 or word = 'x')) and not (id = 5)
(id, word) in ((6, 'Abc'))
s = named_struct('x', 1L, 'y', 'q')
abs(id) = 6
acos(0.5) > 0 and id > 0
add_months(day, 1) > date'2000-01-01'
array(1, 2)[0] = 1 and id > 0
array_contains(tags, 'a')
array_size(tags) = 2
arrays_overlap(tags, array('a'))
ascii(word) = 65
base64(cast(word as binary)) = 'QWJj'
bigint(id) > 0
bit_length(word) = 24
boolean(id) and id > 0
bround(price) >= 2
btrim(word) = 'Abc'
cardinality(tags) = 2
cbrt(price) > 0
ceil(price) = 3
ceiling(price) = 3
char_length(word) = 3
character_length(word) = 3
char(65) = 'A' and id > 0
coalesce(id, 0) > 0
concat(word, 'x') = 'Abcx'
concat_ws('-', word, 'x') = 'Abc-x'
contains(word, 'bc')
conv(word, 16, 10) = '2748'
cos(price) < 2 and id > 0
crc32(word) = 2191738434 or id > 0
current_date() > day and id > 0
current_timestamp() > at and id > 0
date(at) > date'2000-01-01'
date_add(day, 1) > date'2000-01-01'
date_diff(day, date'2000-01-01') > 0
date_format(at, 'yyyy') = '2024'
date_sub(day, 1) > date'2000-01-01'
date_trunc('month', at) > timestamp'2000-01-01 00:00:00'
datediff(day, date'2000-01-01') > 0
day(day) = 6
dayofmonth(day) = 6
dayofweek(day) = 2
dayofyear(day) = 127
double(id) > 0
element_at(tags, 1) = 'a'
endswith(word, 'bc')
exp(price) > 1
extract(year from day) = 2024
find_in_set('Abc', word) = 1
float(id) > 0
floor(price) = 2
format_string('%s', word) = 'Abc'
from_unixtime(id) is not null and id > 0
get_json_object('{"a":1}', '$.a') = '1' and id > 0
greatest(id, 0) = 6
hash(id) is not null and id > 0
hex(id) = '6'
hour(at) = 7
if(id > 0, true, false)
ifnull(id, 0) > 0
initcap(word) = 'Abc'
instr(word, 'b') = 2
int(id) > 0
isnan(price) = false and id > 0
isnotnull(id) and id > 0
isnull(word) = false and id > 0
json_array_length('[1]') = 1 and id > 0
last_day(day) > date'2000-01-01'
lcase(word) = 'abc'
least(id, 0) = 0
left(word, 1) = 'A'
len(word) = 3
length(word) = 3
levenshtein(word, 'Abd') = 1
ln(price) > 0
locate('b', word) = 2
log(price) > 0
log10(price) > 0
log2(price) > 0
lower(word) = 'abc'
lpad(word, 4, 'x') = 'xAbc'
ltrim(word) = 'Abc'
make_date(2000, 1, 1) < day
map_contains_key(attrs, 'k')
map_keys(attrs)[0] = 'k'
md5(word) is not null and id > 0
minute(at) = 8
mod(id, 4) = 2
month(day) = 5
months_between(day, date'2000-01-01') > 0
nanvl(price, 0) > 0
negative(id) < 0
nullif(id, 5) = 6
nvl(id, 0) > 0
nvl2(id, id, 0) > 0
octet_length(word) = 3
pmod(id, 4) = 2
position('b', word) = 2
positive(id) > 0
pow(price, 2) > 6
power(price, 2) > 6
quarter(day) = 2
radians(price) > 0
regexp(word, '^A')
regexp_count(word, 'b') = 1
regexp_extract(word, '(A)', 1) = 'A'
regexp_like(word, '^A')
regexp_replace(word, 'A', 'x') = 'xbc'
repeat(word, 2) = 'AbcAbc'
replace(word, 'A', 'x') = 'xbc'
reverse(word) = 'cbA'
right(word, 1) = 'c'
rint(price) = 2
round(price) = 3
round(price, 1) = 2.5
rpad(word, 4, 'x') = 'Abcx'
rtrim(word) = 'Abc'
second(at) = 9
sha1(word) is not null and id > 0
sha2(word, 256) is not null and id > 0
shiftleft(id, 1) = 12
sign(price) = 1
signum(price) = 1
sin(price) < 2 and id > 0
size(tags) = 2
size(attrs) = 1 and id > 0
split(word, 'b')[0] = 'A'
split_part(word, 'b', 1) = 'A'
sqrt(abs(price)) > 1.2
startswith(word, 'A')
string(id) = '6'
strpos(word, 'b') = 2
substr(word, 1, 1) = 'A'
substring(word, 1, 1) = 'A'
substring_index(word, 'b', 1) = 'A'
tan(price) < 100 and id > 0
timestamp(day) > timestamp'2000-01-01 00:00:00'
timestampdiff(day, date'2000-01-01', day) > 0
to_date('2000-01-01') < day
to_timestamp('2000-01-01 00:00:00') < at
translate(word, 'A', 'x') = 'xbc'
trim(word) = 'Abc'
trim(both ' ' from word) = 'Abc'
trunc(day, 'month') > date'2000-01-01'
try_divide(id, 2) > 0
typeof(id) = 'bigint' and id > 0
ucase(word) = 'ABC'
unhex('41') is not null and id > 0
unix_timestamp(at) > 946684800
upper(word) = 'ABC'
weekday(day) = 0
weekofyear(day) = 19
xxhash64(id) is not null and id > 0
year(at) = 2024
year(current_date()) > 2000 and id > 0
year(day) = 2024
array_position(tags, 'a') = 1
array_max(tags) = 'b'
array_min(tags) = 'a'
array_distinct(tags)[0] = 'a'
forall(tags, t -> t < 'c')
filter(tags, t -> t = 'a')[0] = 'a'
transform(tags, t -> t)[0] = 'a'
map_values(attrs)[0] = 'v'
sequence(1, 3)[0] = 1 and id > 0
try_element_at(tags, 1) = 'a'
bool_and(flag)
decimal(id) > 0
smallint(id) > 0
tinyint(id) > 0
binary(word) is not null and id > 0
to_json(s) is not null and id > 0
date_part('year', day) = 2024
uuid() is not null and id > 0
rand() < 2 and id > 0
inline_outer(tags)
soundex(word) = 'A120'
space(1) = ' ' and id > 0
overlay(word placing 'x' from 1) = 'xbc'
bit_count(id) = 2
factorial(3) = 6 and id > 0
isnotnull(word) and id > 0
bitwise_not(id) = -7
from_json('{"a":1}', 'a int').a = 1 and id > 0
to_number('6', '9') = 6 and id > 0
to_char(id, '9') = '6'
equal_null(id, 6)
iff(id > 0, true, false)
raise_error('x') is null
assert_true(id > 0) is null
charindex('b', word) = 2
mask(word) = 'Xxx' and id > 0
luhn_check('79927398713') and id > 0
timestamp_seconds(id) is not null and id > 0
unix_date(day) > 0 and day > '2000-01-01'
date_from_unix_date(1) < day
current_user() is not null and id > 0
version() is not null and id > 0
array_union(tags, array('c'))[0] = 'a'
array_except(tags, array('b'))[0] = 'a'
array_join(tags, ',') = 'a,b'
arrays_zip(tags, tags)[0] is not null and id > 0
cot(price) < 100 and id > 0
degrees(price) > 0
e() > 2 and id > 0
pi() > 3 and id > 0
sinh(price) > 0
tanh(price) > 0
cosh(price) > 0 and id > 0
asin(0.5) > 0 and id > 0
atan(price) > 0
atan2(price, 1) > 0
expm1(price) > 0
log1p(price) > 0
hypot(price, 1) > 0 and id > 0
width_bucket(price, 0.0, 10.0, 5) > 0
named_struct('a', id).a > 0
struct(id).id > 0
map('a', id)['a'] > 0
nullifzero(id) > 0
zeroifnull(id) > 0
to_utc_timestamp(at, 'UTC') > timestamp'2000-01-01 00:00:00'
from_utc_timestamp(at, 'UTC') > timestamp'2000-01-01 00:00:00'
dayname(day) = 'Mon'
monthname(day) = 'May'
next_day(day, 'MO') > date'2000-01-01'
dateadd(day, 1) > date'2000-01-01'
timestampadd(day, 1, at) > timestamp'2000-01-01 00:00:00'
localtimestamp() is not null and id > 0
now() > at and id > 0
curdate() > day and id > 0
elt(1, word) = 'Abc'
encode(word, 'utf-8') is not null and id > 0
decode(encode(word, 'utf-8'), 'utf-8') = 'Abc'
printf('%s', word) = 'Abc'
parse_url('http://a/b', 'HOST') = 'a' and id > 0
url_encode(word) = 'Abc'
regexp_substr(word, 'A') = 'A'
regexp_instr(word, 'b') = 2
rlike(word, '^A')
like(word, 'A%')
ilike(word, 'a%')
chr(65) = 'A' and id > 0
slice(tags, 1, 1)[0] = 'a'
shuffle(tags) is not null and id > 0
sort_array(tags)[0] = 'a'
array_sort(tags)[0] = 'a'
flatten(array(tags))[0] = 'a'
reduce(tags, 0, (a, t) -> a + 1) = 2
aggregate(tags, 0, (a, t) -> a + 1) = 2
price > -5.5D and id > 0
price > -5BD and id > 0
id > -9S and price > 0
id > -9l and price > 0
price > -5.D and id > 0
id > 0L and price > 0
word <> 'q' 'r' and id > 0
id > 0 and word <> 'q' 'r'
id > 0 and price > 0.5D
id > 0 and cast(word as binary) is not null
id > 0 and try_cast(word as long) is null
id > 0 and cast(id as short) > 0
id > 0 and cast(id as byte) > 0
cast(price as dec(10,2)) > 0
cast(at as timestamp_ntz) > cast('2000-01-01' as timestamp_ntz)
id > 0 and cast(null as void) is null
cast(price as numeric(10,2)) > 0
cast(price as real) > 0
cast(id as smallint) > 0
cast(id as tinyint) > 0
cast(price as float) > 0
cast(word as varchar(10)) = 'Abc'
cast(flag as bool)
word like any ('A%', 'B%')
word not like all ('z%', 'y%')
id > 0x0
