<?php
// What PHP makes of values of Authorization: its own reading of Basic (main/main.c, php_handle_auth_data), and tokens as
// firebase/php-jwt and many scripts read them.
$asked = json_decode(stream_get_contents(STDIN), true);

function basic(string $value): ?string {
    if (strncasecmp($value, 'Basic ', 6) !== 0) return null;
    $user = base64_decode(substr($value, 6));
    $nul = strpos($user, "\0");
    if ($nul !== false) $user = substr($user, 0, $nul);
    return str_contains($user, ':') ? $user : null;
}

function token(string $value, string $secret): ?string {
    if (!preg_match('/Bearer\s+(\S+)/i', $value, $found)) return null;
    $parts = explode('.', $found[1]);
    if (count($parts) !== 3) return null;
    $signature = base64_decode(strtr($parts[2], '-_', '+/'));
    $expected = hash_hmac('sha256', "$parts[0].$parts[1]", $secret, true);
    if (!hash_equals($expected, $signature)) return null;
    return json_decode(base64_decode(strtr($parts[1], '-_', '+/')), true)['sub'] ?? null;
}

// As tymon/jwt-auth 2 finds a token: after the last "bearer", up to a comma.
function lastToken(string $value, string $secret): ?string {
    $at = strripos($value, 'bearer');
    if ($at === false) return null;
    $token = trim(explode(',', substr($value, $at + 6))[0]);
    return token("Bearer $token", $secret);
}

// Laravel's Request::bearerToken.
function bearerToken(string $value, array $tokens): ?string {
    $at = strrpos($value, 'Bearer ');
    if ($at === false) return null;
    $token = explode(',', substr($value, $at + 7))[0];
    return in_array($token, $tokens, true) ? $token : null;
}

$valid = fn (?string $text) => $text !== null && mb_check_encoding($text, 'UTF-8') ? $text : null;
echo json_encode([
    'php basic' => array_map(fn ($value) => $valid(basic(mb_convert_encoding($value, 'ISO-8859-1', 'UTF-8'))), $asked['values']),
    'php token' => array_map(fn ($value) => $valid(token(mb_convert_encoding($value, 'ISO-8859-1', 'UTF-8'), $asked['secret'])), $asked['values']),
    'php last token' => array_map(fn ($value) => $valid(lastToken(mb_convert_encoding($value, 'ISO-8859-1', 'UTF-8'), $asked['secret'])), $asked['values']),
    'laravel' => array_map(fn ($value) => $valid(bearerToken(mb_convert_encoding($value, 'ISO-8859-1', 'UTF-8'), $asked['tokens'])), $asked['values']),
    'php replaced token' => array_map(fn ($value) => $valid(token('Bearer ' . str_replace('Bearer ', '', mb_convert_encoding($value, 'ISO-8859-1', 'UTF-8')), $asked['secret'])), $asked['values']),
]);
