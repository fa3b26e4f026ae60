<?php
// The sign-in of express.js in PHP, on its own server.

$type = strtolower(trim(explode(';', $_SERVER['CONTENT_TYPE'] ?? '')[0]));
$fields = $type === 'application/json' ? json_decode(file_get_contents('php://input'), true) : $_POST;
if (!is_array($fields)) {
    http_response_code(400);
    return;
}
if (($fields['password'] ?? null) === 'right') {
    header('Location: /', true, 303);
    return;
}
$email = $fields['email'] ?? '';
$account = strtolower(trim(is_array($email) ? (string) end($email) : (string) $email));
file_put_contents(getenv('FAILURES'), "$account\n", FILE_APPEND | LOCK_EX);
http_response_code(401);
