<?php
// Cleans names, in hexadecimal, with the functions of Debian's WordPress in the language that the argument names: without tags, once as a
// sign-in does, and again as its lookup does.

function apply_filters($name, $value) { return $value; }
function get_locale() { return $GLOBALS['argv'][1]; }
function mbstring_binary_safe_encoding() {}
function reset_mbstring_encoding() {}
require '/usr/share/wordpress/wp-includes/formatting.php';

$cleaned = array_map(function (string $name): array {
  $sent = hex2bin($name);
  $once = sanitize_user($sent);
  // As `WP_User::get_data_by`.
  return array_map('bin2hex', [wp_strip_all_tags($sent), $once, sanitize_user(trim($once))]);
}, json_decode(stream_get_contents(STDIN)));
echo json_encode($cleaned);
