use strict;
use warnings;
use Time::HiRes qw(sleep);

# Takes as long as `ms` says.
sub {
    my ($ms) = (shift->{QUERY_STRING} || '') =~ /ms=(\d+)/;
    sleep(($ms || 0) / 1000);
    return [200, ['Content-Type' => 'text/plain', 'Content-Length' => 2], ['ok']];
};
