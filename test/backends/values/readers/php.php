<?php
// Reads a list of texts in base64, and writes for each what PHP takes for the value. READER says of what.
function flat($value) {
    return is_array($value) ? array_merge([], ...array_map('flat', array_values($value))) : [(string) $value];
}
$readers = [
    'query' => function ($text) { parse_str($text, $all); return isset($all['user']) ? flat($all['user']) : []; },
    'intval' => fn ($text) => preg_match('/^\s*[+-]?\.?\d/', $text) ? [(string) intval($text)] : [],
];
$read = $readers[getenv('READER')];
$texts = json_decode(file_get_contents('php://stdin'));
echo json_encode(array_map(fn ($text) => array_map('base64_encode', $read(base64_decode($text))), $texts));
