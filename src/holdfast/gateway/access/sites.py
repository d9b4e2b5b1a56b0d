"""What the addresses of one client have in common."""

from ipaddress import IPv6Address, ip_address

LOOPBACK = "loopback"
_SITE_BITS = 64  # of an IPv6 address: what one machine, or one home, has to itself


def site_of(address: str) -> str:
    """An IPv4 address itself, the network of an IPv6 address, one name for this machine."""
    try:
        found = ip_address(address)
    except ValueError:
        return address
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    if found.is_loopback:
        return LOOPBACK
    return str(int(found) >> (128 - _SITE_BITS)) if isinstance(found, IPv6Address) else str(found)
