"""Every limit of the system, with its unit last and the sum that led to it.

Beyond a limit holdfast refuses with a clear error; it never slows to a halt or grows without bound.
"""

KIB = 1024
MIB = 1024 * KIB

# --- keys -------------------------------------------------------------------------------------
KEY_COUNTER_BITS = 51  # 2^51 keys a partition: 70 years at 1,000,000 keys/s
PARTITIONS_MAX = 4_095  # 13 bits less the sign bit, so that a key is a positive signed 64-bit integer

# --- journal ----------------------------------------------------------------------------------
ENTRY_BYTES_MAX = 4 * MIB  # one record; larger content goes by reference
SEGMENT_BYTES = 64 * MIB  # 0.1 s to fill with zeros ahead of use; 16 of them are a GiB
SEGMENT_BYTES_MIN = 64 * KIB
INDEX_INTERVAL_BYTES = 4 * KIB  # a reader scans at most one page of frames to find an offset
READ_BYTES_MAX = 1 * MIB  # what one read hands out: large enough to amortise, small enough to hold
TOPIC_NAME_BYTES_MAX = 200
