<?php
// A script that is its own endpoint, as WordPress has them.
if ($_SERVER['REQUEST_METHOD'] === 'POST') header('X-Reached: login');
echo 'reached';
