<?php
// Takes as long as `ms` says.
usleep(1000 * (int) ($_GET['ms'] ?? 0));
header('Content-Type: text/plain');
echo 'ok';
