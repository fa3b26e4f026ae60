use strict;
use warnings;

# PATH_INFO is the path decoded once. `$` matches before a line end too, as in most Perl.
sub {
    my $env = shift;
    my ($method, $path) = @$env{qw(REQUEST_METHOD PATH_INFO)};
    my $name =
        $method eq 'POST' && $path =~ m{^/login/?$}i ? 'login'
      : $method =~ /^(?:GET|HEAD)$/ && $path =~ m{^/api/v1/export/[^/]+$} ? 'export'
      : $path =~ m{^/admin/} ? 'admin'
      :                        undef;
    return [404, ['Content-Type' => 'text/plain'], ['none']] unless $name;
    return [200, ['Content-Type' => 'text/plain', 'X-Reached' => $name], ['reached']];
};
