# Preloaded into PostgreSQL's own tests (perl -MBetween): what they do about subscriptions is put to a broker, which
# runs a capture and a publisher between each subscription and its server. The tests themselves stay as they are.
#
# The broker listens at the Unix socket PGOUTPUT_BROKER, and takes one JSON object a connection and line; it answers
# with one: {"error": ...} where the request failed.

package Between;

use strict;
use warnings;
use IO::Socket::UNIX;
use JSON::PP;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $statement = qr/\b(?:CREATE|ALTER|DROP)\s+SUBSCRIPTION\b/i;

sub ask
{
	my (%request) = @_;
	my $socket = IO::Socket::UNIX->new(Peer => $ENV{PGOUTPUT_BROKER})
	  or die "cannot reach the broker: $!";
	print $socket JSON::PP->new->canonical->encode(\%request), "\n";
	$socket->flush;
	my $line = <$socket>;
	die "the broker has gone" unless defined $line;
	my $reply = JSON::PP->new->decode($line);
	diag("capture and serve: $_") foreach @{ $reply->{notes} // [] };
	die "capture and serve: $reply->{error}\n" if defined $reply->{error};
	return $reply;
}

no warnings 'redefine';

my $psql = \&PostgreSQL::Test::Cluster::psql;
my $poll_query_until = \&PostgreSQL::Test::Cluster::poll_query_until;
my $wait_for_catchup = \&PostgreSQL::Test::Cluster::wait_for_catchup;
my $wait_for_subscription_sync =
  \&PostgreSQL::Test::Cluster::wait_for_subscription_sync;

# Every statement of a test goes through psql(), safe_psql() too. A text is run in parts where a subscription is
# dropped and another one of its name created: what is between them ends, and begins, in that order.
*PostgreSQL::Test::Cluster::psql = sub {
	my ($self, $dbname, $sql, %params) = @_;
	return $psql->(@_) unless defined $dbname && defined $sql && $sql =~ $statement;

	my $server = $self->connstr($dbname);
	my $parts = ask(do => 'split', sql => $sql)->{parts};
	return run_part($self, $server, $dbname, $parts->[0], %params) if @$parts == 1;

	my ($out, $err, $ret) = ('', '', 0);
	foreach my $part (@$parts)
	{
		my ($one_out, $one_err) = ('', '');
		$ret = run_part($self, $server, $dbname, $part, %params,
			stdout => \$one_out, stderr => \$one_err);
		$out .= $one_out;
		$err .= $one_err;
		last if $ret;
	}
	${ $params{stdout} } = $out if $params{stdout};
	${ $params{stderr} } = $err if $params{stderr};
	return wantarray ? ($ret, $out, $err) : $ret;
};

sub run_part
{
	my ($self, $server, $dbname, $sql, %params) = @_;
	my %about = (server => $server, sql => $sql);
	my $rewritten = ask(%about, do => 'before')->{sql};
	my @result = eval {
		wantarray
		  ? $psql->($self, $dbname, $rewritten, %params)
		  : scalar $psql->($self, $dbname, $rewritten, %params);
	};
	my $failure = $@;
	ask(%about, do => 'after');
	die $failure if $failure;
	return wantarray ? @result : $result[0];
}

# The subscriber has what the publisher had when the capture has it, which the server says of the capture's connection,
# and the subscriber has confirmed as much to the publisher between.
*PostgreSQL::Test::Cluster::wait_for_catchup = sub {
	my ($self, $name, @more) = @_;
	my $shown = ref $name ? $name->name : $name;
	$wait_for_catchup->($self, $name, @more);
	ask(do => 'catchup', server => $self->connstr('postgres'), name => $shown);
	return;
};

# Subscriptions are created with copy_data = false, since copies come as inserts of the stream: a table is synchronized
# when its copy has come.
*PostgreSQL::Test::Cluster::wait_for_subscription_sync = sub {
	my ($self, $publisher, $subname, $dbname) = @_;
	ask(do => 'synced', server => $self->connstr($dbname // 'postgres'));
	return $wait_for_subscription_sync->(@_);
};

*PostgreSQL::Test::Cluster::poll_query_until = sub {
	my ($self, $dbname, $query, @more) = @_;
	if ($query =~ /SELECT srsubstate = 'd' FROM pg_subscription_rel/)
	{
		ask(do => 'copying', server => $self->connstr($dbname));
		return 1;
	}
	ask(do => 'synced', server => $self->connstr($dbname))
	  if $query =~ /pg_subscription_rel/ && $query =~ /srsubstate\s+(?:NOT\s+)?IN/i;
	return $poll_query_until->(@_);
};

# What the server logs of the COPY with which a subscription synchronizes a table is not there to be found.
my $wait_for_log = \&PostgreSQL::Test::Cluster::wait_for_log;
*PostgreSQL::Test::Cluster::wait_for_log = sub {
	my ($self, $regexp, $offset) = @_;
	return $wait_for_log->(@_) if $regexp !~ /statement: COPY/;
	diag("capture and serve: not waited for: $regexp");
	return -s $self->logfile;
};

1;
