<?php
// Answers a request with what PHP takes for the value of `email`: in the form, merged with the query, and in JSON.
function flat($value) {
    if ($value === null) return [];
    if (is_array($value)) return array_is_list($value) ? array_merge([], ...array_map('flat', $value)) : [];
    return [is_string($value) ? $value : json_encode($value)];
}
$values = array_merge(flat($_POST['email'] ?? null), flat($_REQUEST['email'] ?? null));
$json = json_decode(file_get_contents('php://input'), true);
if (is_array($json))
    foreach (array_is_list($json) ? $json : [$json] as $one) if (is_array($one)) $values = array_merge($values, flat($one['email'] ?? null));
echo json_encode(array_map('base64_encode', $values));
