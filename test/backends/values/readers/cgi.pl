# Reads a list of texts in base64, and writes for each what CGI.pm takes for the value. READER says of what.
use strict;
use warnings;
use CGI ();
use CGI::Cookie ();
use JSON::PP qw(decode_json encode_json);
use MIME::Base64 qw(decode_base64 encode_base64);

$ENV{REQUEST_METHOD} = 'GET';
my %readers = (
    query => sub { my @values = CGI->new($_[0])->multi_param('user'); @values },
    cookie => sub {
        my %cookies = CGI::Cookie->parse($_[0]);
        my $value = $cookies{sid} && $cookies{sid}->value;
        defined $value ? ($value) : ();
    },
);

my $read = $readers{ $ENV{READER} };
local $/;
my $texts = decode_json(<STDIN>);
my @values = map { my $text = decode_base64($_); [ map { utf8::encode($_) if utf8::is_utf8($_); encode_base64($_, '') } grep { defined } $read->($text) ] } @$texts;
print encode_json(\@values);
