<?php
// For PHP's own server. READING: how the path is taken from the request, as frameworks do it.
$path = match (getenv('READING')) {
    // Slim, FastRoute's manual: without the query, decoded once.
    'decoded' => rawurldecode(explode('?', $_SERVER['REQUEST_URI'])[0]),
    // Many a hand-written router.
    'parsed' => parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH),
    // What the server has made of it.
    'server' => $_SERVER['PATH_INFO'] ?? $_SERVER['SCRIPT_NAME'],
};
// Symfony, and Laravel with it: only where the request is a POST.
$method = $_SERVER['REQUEST_METHOD'];
if ($method === 'POST') $method = strtoupper($_SERVER['HTTP_X_HTTP_METHOD_OVERRIDE'] ?? 'POST');

$reached = match (true) {
    $method === 'POST' && preg_match('~^/login/?$~', (string) $path) => 'login',
    in_array($method, ['GET', 'HEAD']) && preg_match('~^/api/v1/export/[^/]+$~', (string) $path) => 'export',
    (bool) preg_match('~^/admin/.*$~s', (string) $path) => 'admin',
    default => null,
};
if ($reached) header("X-Reached: $reached");
else http_response_code(404);
echo 'reached';
