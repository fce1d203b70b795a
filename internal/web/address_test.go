package web_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/internal/web"
)

func TestPublicAddresses(t *testing.T) {
	t.Parallel()
	for _, a := range []string{
		"1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1", "168.63.129.15", "::ffff:1.1.1.1",
		"2606:4700:4700::1111", "2001:200::1", "64:ff9b::1.1.1.1", "2002:101:101::",
	} {
		assert.True(t, web.Public(netip.MustParseAddr(a)), a)
	}
	for _, a := range []string{
		"127.0.0.1", "127.255.255.254", "::1", "::ffff:127.0.0.1", "::127.0.0.1", "0.0.0.0", "0.1.2.3", "::", // this machine
		"10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "::ffff:10.0.0.1", "fd00::1", "fc00::1", // private
		"169.254.169.254", "169.254.170.2", "::ffff:169.254.169.254", "fe80::1", "fe80::1%eth0", "fd00:ec2::254", // link-local, metadata
		"168.63.129.16", "100.100.100.200", "192.0.0.192", "100.64.0.1", "::ffff:100.100.100.200", "::ffff:168.63.129.16", // of clouds and carriers
		"224.0.0.1", "239.255.255.250", "255.255.255.255", "240.0.0.1", "ff02::1", // to many
		"64:ff9b::7f00:1", "64:ff9b::10.0.0.1", "64:ff9b:1::1", "2002:7f00:1::", "2002:a00:1::", "2001::1", "::ffff:0:127.0.0.1", // IPv4 inside
		"192.0.2.1", "198.51.100.1", "203.0.113.1", "198.18.0.1", "2001:db8::1", "3fff::1", "fec0::1", "100::1", "2606:4700::1%eth0",
	} {
		assert.False(t, web.Public(netip.MustParseAddr(a)), a)
	}
	assert.False(t, web.Public(netip.Addr{}))
}

func TestValid(t *testing.T) {
	t.Parallel()
	for _, u := range []string{"https://a.de", "http://a.de:8080/x?y#z", "ftp://a.de/x", "file:///etc/passwd", "https://u:p@a.de/", "https://[::1]/", "data:text/plain,x"} {
		assert.True(t, web.Valid(u), u)
	}
	for _, u := range []string{"", "x", "not a url", "/a", "//a.de/x", "https:", "https://", "https:a.de", "http:///x", "https://a.de\n/", "https://%zz/", "https://[::1/"} {
		assert.False(t, web.Valid(u), u)
	}
}
