<?php
// A front controller: the path is in a parameter, which a rewrite rule has made, or behind the script.
$path = '/' . trim($_GET['url'] ?? $_SERVER['PATH_INFO'] ?? '', '/');
$reached = match (true) {
    in_array($_SERVER['REQUEST_METHOD'], ['GET', 'HEAD']) && preg_match('~^/api/v1/export/[^/]+$~i', $path) => 'export',
    (bool) preg_match('~^/admin/.*$~si', $path) => 'admin',
    default => null,
};
if ($reached) header("X-Reached: $reached");
else http_response_code(404);
echo 'reached';
