package web

import (
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

// AddressError is an address that is not fetched from, since it is not public: it may be this
// machine, its network, or a service that gives out keys.
type AddressError struct {
	Host string // of the URL, or "": only the address is known
	Addr netip.Addr
}

// Error says which address it is.
func (e *AddressError) Error() string {
	host := e.Host
	if host == "" {
		host = e.Addr.String()
	}
	return fmt.Sprintf("WebFetch cannot fetch %s: %s is not a public address. To reach a server of this machine or its network, use Bash with curl instead.", host, e.Addr)
}

// special are networks that are global by their bits and not public all the same: the registries
// of the IANA for special purposes (RFC 6890), and what clouds have for their own.
func special() []netip.Prefix {
	var all []netip.Prefix
	for _, s := range []string{
		"0.0.0.0/8",        // this network
		"100.64.0.0/10",    // carriers; Alibaba's metadata
		"168.63.129.16/32", // Azure's services for a machine
		"192.0.0.0/24",     // protocols; Oracle's metadata
		"192.0.2.0/24",     // documentation
		"192.88.99.0/24",   // relays of 6to4
		"198.18.0.0/15",    // benchmarks
		"198.51.100.0/24",  // documentation
		"203.0.113.0/24",   // documentation
		"240.0.0.0/4",      // reserved, and broadcast
		"::/96",            // IPv4 in IPv6, as it was
		"64:ff9b:1::/48",   // translation in a network
		"100::/64",         // discarded
		"2001::/23",        // protocols, such as Teredo
		"2001:db8::/32",    // documentation
		"3fff::/20",        // documentation
		"5f00::/16",        // segment routing
		"fec0::/10",        // sites, as it was
		"::ffff:0:0:0/96",  // translated IPv4
	} {
		all = append(all, netip.MustParsePrefix(s))
	}
	return all
}

// Public reports whether an address is one of the internet's. An IPv4 address counts as itself
// in each of the forms in which IPv6 carries it.
func Public(a netip.Addr) bool {
	a = a.Unmap()
	if a.Zone() != "" || !a.IsValid() || !a.IsGlobalUnicast() || a.IsPrivate() {
		return false
	}
	for _, p := range special() {
		if p.Contains(a) {
			return false
		}
	}
	if inside, carried := carried(a); carried {
		return Public(inside)
	}
	return true
}

// carried is the IPv4 address that an IPv6 address stands for: of NAT64, and of 6to4.
func carried(a netip.Addr) (netip.Addr, bool) {
	if !a.Is6() {
		return a, false
	}
	b := a.As16()
	switch {
	case netip.MustParsePrefix("64:ff9b::/96").Contains(a):
		return netip.AddrFrom4([4]byte(b[12:16])), true
	case netip.MustParsePrefix("2002::/16").Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	}
	return a, false
}

// publicOnly lets a connection be made only to a public address. It is asked with the address
// to which the connection really goes, after the name was resolved.
func publicOnly(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", address, err)
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", address, err)
	}
	if !Public(a) {
		return &AddressError{Addr: a}
	}
	return nil
}
