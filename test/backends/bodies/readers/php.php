<?php
// Answers a request with what PHP takes for the value of `email`, or of `user.email`, as NAMES has it: in the form, merged with the query,
// and in JSON.
function flat($value) {
    if ($value === null) return [];
    if (is_array($value)) return array_is_list($value) ? array_merge([], ...array_map('flat', $value)) : [];
    return [is_string($value) ? $value : json_encode($value)];
}
$names = explode('.', getenv('NAMES'));
function at($value) {
    global $names;
    foreach ($names as $name) $value = is_array($value) ? ($value[$name] ?? null) : null;
    return flat($value);
}
$values = array_merge(at($_POST), at($_REQUEST));
// PHP writes a dot in the name of a field as this.
if (count($names) > 1) $values = array_merge($values, flat($_REQUEST[implode('_', $names)] ?? null));
$json = json_decode(file_get_contents('php://input'), true);
if (is_array($json))
    foreach (array_is_list($json) ? $json : [$json] as $one) if (is_array($one)) $values = array_merge($values, at($one));
echo json_encode(array_map('base64_encode', $values));
