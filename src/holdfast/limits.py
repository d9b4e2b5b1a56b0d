"""Every limit of the system, with its unit last and the sum that led to it.

Beyond a limit holdfast refuses with a clear error; it never slows to a halt or grows without bound.
"""

KIB = 1024
MIB = 1024 * KIB

# --- keys -------------------------------------------------------------------------------------
KEY_COUNTER_BITS = 51  # 2^51 keys a partition: 70 years at 1,000,000 keys/s
PARTITIONS_MAX = (
    4_095  # 13 bits less the sign bit, so that a key is a positive signed 64-bit integer
)

# --- numbers ----------------------------------------------------------------------------------
WHOLE_MAX = 2**63 - 1  # what a signed 64-bit integer holds, as records, columns and JSON clients do
VERSION_MAX = 2**31 - 1  # of a process: a deployment a second for 68 years

# --- journal ----------------------------------------------------------------------------------
ENTRY_BYTES_MAX = 4 * MIB  # one record; larger content goes by reference
SEGMENT_BYTES = 64 * MIB  # 0.1 s to fill with zeros ahead of use; 16 of them are a GiB
SEGMENT_BYTES_MIN = 64 * KIB
INDEX_INTERVAL_BYTES = 4 * KIB  # a reader scans at most one page of frames to find an offset
TIMESTAMP_MS_MAX = 253_402_300_799_999  # the end of the year 9999
READ_BYTES_MAX = 1 * MIB  # of one read: large enough to amortise its cost, small enough for memory
TOPIC_NAME_BYTES_MAX = 200
APPEND_BYTES_MAX = 64 * MIB  # one append is one write and one frame: 16 of the largest entries
EAGER_COMMIT_BYTES = 4 * MIB  # enough to keep the disk busy: larger commits are hardly faster
THREAD_COMMIT_BYTES_MIN = 512 * KIB  # below it a sync is over before a thread has woken up
LOOP_COMMIT_BYTES_MAX = 2 * MIB  # 0.7 ms on a quick disk; above it the loop has enough to prepare
LOOP_COMMIT_SECONDS_MAX = 0.001  # a hop to a thread and back costs 0.3 ms: not worth it below
COMMIT_BYTES_MAX = 16 * MIB  # of appends that share a sync: 16 ms at 1 GB/s, then the loop runs
SEGMENT_BYTES_FIRST = 4 * MIB  # 5 ms to fill: a fresh topic opens at once; each next one doubles
SPARE_SEGMENTS_MAX = 4  # discarded files kept for reuse: 256 MiB that need no new blocks
SEGMENTS_OPEN_MAX = 16  # open files with cached offsets: 16 x 1.5 MiB at 256 partitions
STREAM_POLL_MS_MIN = 2  # how soon the stream of another process polls again after news
STREAM_POLL_MS_MAX = 100  # and how often when idle: 10 polls/s of 20 us are 0.02% of a core
REBUILD_RETRY_MS = 1_000  # a state of 1 GB is rebuilt in about 10 s
DISK_FULL_RETRY_MS = 1_000  # space is freed by people or by retention, not faster than this
RETENTION_INTERVAL_MS = 60_000  # how often old segments are searched for: they are hours old
LATE_APPEND_MS = 5_000  # how long a closing node waits for an append: as long as for a quorum

# --- blobs ------------------------------------------------------------------------------------
BLOB_NAME_BYTES_MAX = 500  # S3 takes 1,024 with the prefix
BLOB_PIECE_BYTES = 1 * MIB  # of a blob in one read
BLOB_PART_BYTES = 8 * MIB  # of an upload to S3, which takes 10,000 parts: 78 GiB a blob
BLOB_PARTS_IN_FLIGHT_MAX = 2  # with the part that is being filled, 24 MiB of memory
BLOB_RETRIES_MAX = 8  # of a request: pauses of 0.1 s that double, up to
BLOB_RETRY_MS_MAX = 30_000  # ... this long in all; after that the caller gets Unavailable

# --- content ----------------------------------------------------------------------------------
CONTENT_NAME_BYTES_MAX = 255  # of a path segment: the limit of file systems on Linux and macOS
CONTENT_PATH_BYTES_MAX = 2_048  # half of the limit on Linux, so that a folder fits in front of it
CONTENT_DEPTH_MAX = 100  # path segments: a dozen are usual; each costs a system call
CONTENT_PROPERTIES_BYTES_MAX = 4 * MIB  # of a node, as of a record; what is larger is a binary
CONTENT_CHUNK_BYTES = 1 * MIB  # of a binary in a row: two or three of them are in memory
CONTENT_BUFFER_NODES_MAX = 1_000  # of a change set before its transaction gets them: 5 ms, ...
CONTENT_BUFFER_BYTES_MAX = 4 * MIB  # ... or so many bytes of properties
CONTENT_STORE_BUSY_MS_MAX = 30_000  # wait for another process's change set on the same store
CONTENT_STORE_CONNECT_MS_MAX = 10_000  # for PostgreSQL to answer a new connection
CONTENT_GRACE_MS = 1_000  # how long a reader may use the files of a directory that it has resolved
CONTENT_SYNCS_MAX = 7  # files synced one by one; from eight on, syncing the disk takes a third
CONTENT_CHECKPOINT_BYTES = 64 * MIB  # SQLite's log is truncated to this size after a checkpoint

# --- packages of content ----------------------------------------------------------------------
CONTENT_INLINE_BYTES_MAX = 800_000  # a package on the log: a fifth of a record; above it, a blob
CONTENT_BINARY_BYTES_MIN = 64 * KIB  # from here on a binary is a blob, which other packages share
CONTENT_PATHS_MAX = 1_000  # that a package names
CONTENT_PATHS_BYTES_MAX = 256 * KIB  # of them: twice that, if all are deep, an eighth of a record
CONTENT_ENTRIES_MAX = 250_000  # nodes of a package: 20 s of work, during which others wait
CONTENT_MANIFEST_BYTES_MAX = 128 * MIB  # 500 B for each of them; read and written in blocks
CONTENT_BLOCK_BYTES = 64 * KIB  # of entries that are written together: 500 small ones
CONTENT_BLOCK_BYTES_MAX = 512 * KIB  # decoded at once: 32 MiB, if all of it are empty maps
CONTENT_BINARIES_MAX = 9_000  # blobs of a package: 730 KB of names, which fit its message
CONTENT_TOTAL_BYTES_MAX = 256 * 1024 * MIB  # of a package and its binaries; S3 takes 78 GiB a blob
CONTENT_BLOB_LOOKS_MAX = 5  # at a store that does not have a blob yet, with pauses that double ...
CONTENT_BLOB_LOOK_MS = 100  # ... from this one on: 1.5 s, then the subscriber tries again later
CONTENT_CLEANUP_INTERVAL_MS = 12 * 3_600_000  # unreferenced blobs stay up to half a day longer
CONTENT_CLEANUP_SLICE = 50  # blobs removed while publications with blobs wait: 1 s in S3
CONTENT_MARK_SHARDS = 256  # files of marks: 30 KB each, if there are 100,000 blobs
CONTENT_HEADS_AT_ONCE = 8  # blobs of a publication that are checked at once: 9,000 take 20 s in S3
CONTENT_BLOB_LATE_MS = 600_000  # how much later than its package a blob may arrive
CONTENT_BLOBS_KNOWN_MAX = 100_000  # recently checked blobs that need no further check: 15 MB

# --- engine -----------------------------------------------------------------------------------
STEP_COMMANDS_MAX = 4_096  # about 40 ms of work: the longest wait of a live command for a step
# Records are encoded in groups of this size, while they are in the processor's cache: with 512 a
# process of two steps costs a node a tenth more, with a whole step of thousands a fifth.
RECORDS_HELD_MAX = 128
STEP_DUE_MAX = 512  # due commands in one step: 1 ms to look them up
STEP_MOVES_MAX = 1_000  # tokens moved by follow-ups and due commands in one step: 10 ms
STEP_MS_MAX = 10  # ... or this much time: then live commands go first
STEP_LIVE_MS_MAX = 2  # ... while live commands wait for the same step
LEASE_EXPIRIES_MAX = 20  # a job whose lease expired 20 times probably kills its workers: incident
REQUEST_KEPT_MS = 600_000  # clients retry after UNKNOWN within their deadline: minutes
REQUESTS_KEPT_MAX = 50_000  # on each partition: 80 a second for that long, about 10 MB
REQUEST_ITEMS_MAX = 100  # with an id of their own: 10 us each at the node, as much as a task costs
REQUEST_REPLY_BYTES_MAX = 65_536  # larger answers are not kept: 50,000 of 64 KB would be 3 GB
PURGE_ROWS_MAX = 1_000  # about 2 ms of each step for expired rows
SCHEDULE_CATCH_UP_MAX = 1_000  # missed due times that are made up for: 50 ms of work, half a MB
SCHEDULE_LATE_MS_MAX = 60_000  # a due time that is later than this was missed
SCHEDULE_INTERVAL_MS_MIN = 100  # schedules are for people's times, not for polling
COMMANDS_IN_FLIGHT_MAX = 20_000  # by partition: about 0.5 s of work; beyond it, retry later
DUE_BUG_PAUSE_MS = 1_000  # a due command that throws stays due: it is tried again after this pause
DUE_BUG_PAUSE_MS_MAX = 60_000  # the pause doubles up to this: 1,440 rejections a day on the log
SETTLE_MS = 10_000  # after an unclean start: how long recovered commands are noted
QUARANTINE_COMMANDS_MAX = 100  # remembered as having crashed the process: 20 KB
CLOCK_JUMP_MS = 1_000  # a larger jump means that the clock was set: it is logged and counted
CLOCK_SLEW_PERCENT = 10  # of the time that passes: a difference of an hour is gone after ten hours
CLOCK_ADOPT_MS = 3 * 3_600_000  # a larger jump forward is time that passed: the machine slept
ENDED_KEPT_MAX = 100_000  # tasks, instances or incidents that ended, on a partition: 30 MB
ENDED_RECORDS = 16  # of the log that are read and kept for each of them: a task has 6, or more ...
ENDED_BEGUN_RATIO = 4  # unfinished items remembered for each one that is kept: 150 B
ENDED_LOG_BYTES_MAX = 256 * MIB  # beyond this the log is not kept for them: 4 segments
ENDED_LOOK_BYTES_MAX = 32 * MIB  # of a partition's log that one query reads: 0.1 s
ENDED_READ_BYTES = 32 * KIB  # ... in one go: 400 records, 1 ms
SCAN_RECORDS_MAX = 20_000  # of the log that one request reads: 50 ms
SCAN_BYTES_MAX = 8 * MIB  # ... or this much, if they are large
SCAN_SLICE_RECORDS = 2_000  # ... read in slices between which the partition works: 5 ms
SCAN_SLICE_BYTES = 1 * MIB
SCAN_READ_BYTES = 64 * KIB  # ... in one read: 500 records, 1 ms
SCAN_ANSWER_BYTES = 1 * MIB  # found records are returned at this size
SCAN_SPAN_MIN, SCAN_SPAN_MAX = 64, 1_024  # records that are read at once on the way back
SCAN_PARTITIONS_MAX = 256  # that are read together: a cursor has an offset of each, 2 KB
TRACE_CAUSES_MAX = 64  # of a chain of commands that led to one another; usually a few
TRACE_EFFECTS_MAX = 200  # records shown as effects of one
TRACE_RECORDS_MAX = 2_000  # of the log that are read for them: 3 ms
ERROR_LINE_CHARS_MAX = 200  # of an error, in a list and with the end of an incident
QUERY_ROWS_MAX = 2_000  # that one page of a list reads on a partition: 6 ms
INCIDENTS_GROUPED_MAX = 100_000  # open incidents grouped by cause in one request: 0.8 s
ELEMENTS_LOOKED_MAX = 100_000  # active elements counted for the drawing of a version: 0.3 s
ELEMENTS_COUNTED_MAX = 1_000  # ... that one query counts on a partition: 3 ms
INCIDENTS_COUNTED_MAX = 500  # ... that one query counts on a partition: 4 ms
INCIDENT_CAUSES_MAX = 1_000  # ... distinct causes: 1 MB
STORE_ROWS_MAX = 65_536  # changed rows in memory before some are written to the store: 32 MiB
STORE_WRITE_ROWS = 16_384  # ... that are one write, which cannot be divided: 10 ms
STORE_SLICE_ROWS = 2_048  # of them that are prepared in one go: 1.5 ms
STORE_INTERVAL_MS = 5_000  # ... or after this time: most rows have been deleted by then
SNAPSHOTS_KEPT = 2  # the second is used if the newest is damaged
DAMAGED_KEPT = 2  # damaged states kept for inspection: a bad disk makes many
WALK_ROWS = 1_000  # rows of the state that are checked at a time: 0.2 ms
COPY_BYTES = 1 * MIB  # of a snapshot, copied or read back at a time: 1 ms in a thread
SCRUB_SLICE_BYTES = 64 * KIB  # of a segment, checked at a time: 200 small frames, 0.8 ms
SCRUB_PAUSE_MS = 5  # between two of these: 200,000 rows/s or 12 MB/s of the log, about 5% of a core
SCRUB_INTERVAL_MS = 3_600_000  # from one scrub of all stored data to the next
SNAPSHOT_NEWER_MIN = 100_000  # records that a stored snapshot saves from replay: about a second
SNAPSHOT_SHARE_MAX = 10  # a snapshot that takes a minute is taken every ten minutes at most
BACKUP_PIECE_BYTES = 4 * MIB  # of a file, known by its hash: 8 KB of a manifest for each 512 MiB
BACKUP_EDGE_BYTES = 4 * KIB  # of a file's end, to recognise it without reading the rest
BACKUP_PAUSE_MS = 20  # between two pieces: hashing one takes 10 ms in a thread
BACKUP_HOLD_MS_MAX = 2_000  # that all processes of a node may pause for a common moment
BACKUP_PIN_MS = 60_000  # how long a process keeps its files for another without requests
BACKUP_KEEP_MS = 10_000  # how often the other one asks: five requests may be lost
BACKUP_WORKING_MS_MAX = 86_400_000  # after a day, the owner of a mark in a target is taken for dead
EXPORT_BLOCK_ROWS = 1_000  # of an exported partition, read at a time: 1 ms
EXPORT_BLOCK_BYTES = 256 * KIB  # ... or so much: 1 ms to deflate it
EXPORT_BLOCK_BYTES_MAX = 64 * MIB  # of a block: a row is an ENTRY_BYTES_MAX and little more
TRANSFER_CHUNK_BYTES = 256 * KIB  # of a partition that is sent to another member in one answer
TRANSFERS_MAX = 4  # partitions that a member sends at once: 50 MB/s each, and a scan of the store
TRANSFER_IDLE_MS = 60_000  # an idle transfer is aborted; its log is kept for this long
TRANSFER_ATTEMPTS_MAX = 20  # for a chunk, before the transfer starts again from another member ...
TRANSFER_RETRY_MS = 500  # ... with this pause between them: ten seconds without a connection
STANDBY_RETRY_MS = 500  # before a standby whose log cannot be read tries again
INGEST_FILE_BYTES = 64 * MIB  # of rows in one file of RocksDB, as its own files are
REPLAY_BYTES = 4 * MIB  # of the log in one read while replaying
REPLAY_ENTRIES = 1_024  # ... decoded at a time before they are applied, while they are cached
SETTLE_BRIEFLY_MS = 100  # that a snapshot waits for running steps; it does without the rest
STANDBY_ENTRIES = 128  # of a log that a standby applies at a time: 1 ms
STANDBY_PAUSE_MS = 20  # between two batches of a standby: a hundredth of a take-over

# --- processes --------------------------------------------------------------------------------
DEFINITION_BYTES_MAX = 1 * MIB  # encoded; with its BPMN file it fits a record
SOURCE_BYTES_MAX = 2 * MIB  # the BPMN file
VARIABLES_BYTES_MAX = 3 * MIB  # set at once: with their names they fit a record
WALK_MOVES_MAX = 1_000  # tokens moved in one step: 10 ms, then live commands pass
WALK_ENDINGS_MAX = 1_000  # elements ended in one step: 20 ms with their jobs
WALK_LOOK_MOVES = 8  # moves between two reads of the clock: expressions can be slow
MOVE_BYTES = 1 * KIB  # of variables that count as a move: 10 us to write; 1 MiB for a step
SMALL_VARIABLES_BYTES = 256  # smaller ones are not counted: a thousand of them do not matter
EVENT_BYTES_MAX = 3 * MIB  # of variables in one event: with the rest it fits a record
LOOP_MOVES_MAX = 100_000  # moves of a tree of calls without a wait: 1 s of a core, then an incident
WAIT_MS_MIN = 10  # a shorter timer is not a wait: a loop of them is a loop without one
WAIT_MOVES = 20  # ... and counts as so many moves: it is a step of its own, of 0.2 ms
HELD_PAUSE_MS = 1_000  # a cycle at its token limit is checked again after this time
SCOPE_TOKENS_MAX = 10_000  # in one scope: they double in 14 rounds, then an incident
SCOPE_TOKENS_LOOK = 100  # more than a drawing has: enclosing scopes are checked, too
INSTANCE_TOKENS_MAX = 1_000_000  # in nested scopes, if all were like this one: 1 GB of state
INSTANCE_ITEMS_MAX = 1_000_000  # begun in loops that have not ended, of a tree of calls
CALL_DEPTH_MAX = 100  # processes that call one another
IGNORED_PARTS_MAX = 1_000  # of a BPMN file, named in an answer: some 200 bytes each
TREE_INSTANCES_MAX = 1_000_000  # instances that one instance and those it calls have called
TREE_RECURSIONS_MAX = 10_000  # ... of processes that call themselves: 2 s, then an incident
CALLS_EAGER = 8  # calls that follow at once: 10 ms each at worst, then live commands pass
CALL_MOVES = 5  # a call counts as so many moves: it makes an instance
CALL_EAGER_MOVES = 1_000  # ... unless so many moves were made without a wait
LOOP_BITE_ITEMS = 16  # items begun between two reads of the clock
LOOP_EAGER_ITEMS = 4_096  # active items of a loop before further ones are started slowly
LOOP_PAUSE_MS = 100  # ... one chunk of 256 in this time: a loop of 200,000 is all there in 80 s
RESOURCES_PER_DEPLOYMENT_MAX = 100
ELEMENTS_SHOWN_MAX = 1_000  # of one instance: more than a person reads
MODIFY_ELEMENTS_MAX = 10_000  # active elements of an instance that is modified or migrated: 0.2 s
MESSAGE_TTL_MS_MAX = 366 * 86_400_000
PARCEL_PAUSE_MS = 10_000  # how long an acknowledgement may take before parcels are sent again
PARCEL_PAUSE_MS_MAX = 300_000  # the pause doubles up to this

# --- distribution -----------------------------------------------------------------------------
DISTRIBUTIONS_MAX = 100_000  # active at once, by partition: 100 MB of state at 1 KB a command
DISTRIBUTION_PAUSE_MS = 10_000  # how long to wait for an acknowledgement before a command is resent
DISTRIBUTION_PAUSE_MS_MAX = 300_000  # the pause doubles up to this
DISTRIBUTIONS_IN_FLIGHT_MAX = 256  # without a queue, to one partition: more wait for their turn
RESEND_BYTES_MAX = 8 * MIB  # resent in one step: two of the largest commands
POSTPONE_MS_MIN = 100  # a partition that has no room is asked again ten times a second at most
DEPLOYMENT_WAIT_MS = 5_000  # a deployment is answered when all partitions have it, or after this

# --- transactions -----------------------------------------------------------------------------
TRANSACTION_OPERATIONS_MAX = 1_000  # done in one step: 40 ms at 40 us each
TRANSACTION_BYTES_MAX = 3 * MIB  # of its operations, encoded: with all keys twice it fits a record
TRANSACTION_PARTITIONS_MAX = 64  # each is two records to prepare, vote, decide and acknowledge
TRANSACTIONS_OPEN_MAX = 1_000  # by partition, decided or prepared there: 10 MB at 10 KB each
TRANSACTION_MS = 30_000  # the default timeout: enough for two lost parcels
TRANSACTION_MS_MAX = 600_000  # reservations block others: minutes, not hours
PROMISED_RETRY_MS = 20  # for a commit to reach a partition: a round trip between two members
TRANSACTION_KEPT_MS = 900_000  # after its end: longer than REQUEST_KEPT_MS and an eighth more

# --- batch operations -------------------------------------------------------------------------
BATCH_OPERATIONS_MAX = 1_000  # that have not ended, by leading partition: 10 MB at 10 KB a filter
BATCH_OPERATION_BYTES_MAX = 1 * MIB  # filter and plan, encoded: kept by every partition
BATCH_PAGE_ITEMS_MAX = 10_000  # a chunk of 180 KB, far from ENTRY_BYTES_MAX; 2 ms to store it
BATCH_EXECUTE_ITEMS_MAX = 256  # done in one step: 10 ms at 40 us each
BATCH_EXECUTE_RECORDS_MAX = 1_000  # ... or until they wrote this many: an item may be large
BATCH_EXECUTE_BYTES_MAX = 4 * MIB  # ... or this much: an append holds sixteen times as much
BATCH_ATTEMPTS_MAX = 10  # to select a page: about four minutes, then its partition fails
BATCH_RETRY_MS = 1_000  # the pause after the first failed attempt
BATCH_RETRY_MS_MAX = 60_000  # it doubles up to this
BATCH_ERROR_CHARS_MAX = 500  # of an item: those of a step are 512 KB at most
BATCH_PARTITION_ERROR_CHARS_MAX = 200  # 4,095 of them, at four bytes a character, fit a record
BATCH_THROTTLE_MAX = 1_000_000  # items/s: more than a node can do
BATCH_SELECTIONS_MAX = 4  # pages being selected at once, by partition: a slow one blocks no other
BATCH_LIVE_MS = 1_000  # after a live command: how long items run in small portions
BATCH_LIVE_PORTION_MS = 1  # ... of this much work: what a live command may wait, and a sync
BATCH_IDLE_PORTION_MS = 20  # work of a portion while there are no live commands
BATCH_LIVE_STORE_ROWS_MAX = 512  # meanwhile, rows in memory before they are written: 1 ms
BATCH_STUCK_MS = 1_000  # a partition without an answer for this long is not waited for
BATCH_GAP_LOOK_MS = 1  # how often to check whether live commands are waiting
BATCH_GAP_WAIT_MS = 50  # the longest wait of a portion for a gap: at worst, 4% of a busy node
BATCH_REFUSED_PAUSE_MS = 1_000  # after a refused command of the driver: one rejection a second
BATCH_THROTTLE_STEP_MS = 100  # items of this much time run together: ten small steps a second
BATCH_SELECTION_WAIT_MS = 30_000  # for the pipeline to select; then it is asked again later
BATCH_SELECTION_LOOK_MS = 50  # how often to check for the selection
BATCH_SAMPLE_ITEMS = 20  # keys shown by a dry run
BATCH_ENDED_KEPT = 1_000  # recently ended operations: the tables may not have them yet
BATCH_TABLES_WAIT_MS = 2_000  # for the tables to have an operation that ended
BATCH_RATE_SAMPLE_MS = 500  # how often progress is sampled for the rate
BATCH_RATE_SAMPLES = 20  # ... of the last ten seconds

# --- identity ---------------------------------------------------------------------------------
GROUP_MEMBERS_MAX = 10_000  # of a group or role: they are one row of 300 KB
MEMBERSHIPS_MAX = 100  # groups and roles of one member: all are read for each command
AUTHORIZATIONS_PER_OWNER_MAX = 1_000  # they are read for each command: 0.2 ms
ASKED_KEPT_MAX = 10_000  # cached permission checks: 5 MB
PASSWORDS_KEPT_MAX = 1_000  # recently verified passwords: 0.1 MB
GUESSES_OF_USER_FREE = 5  # wrong passwords for a name, before ...
GUESSES_OF_ADDRESS_FREE = 20  # ... or from an address, which several people may share, before ...
GUESS_PAUSE_MS = 1_000  # ... the next one has to wait; the pause doubles with each, up to ...
GUESS_PAUSE_MS_MAX = 300_000  # ... this: at most 300 guesses a day and name
GUESS_FORGOTTEN_MS = 900_000  # after the last wrong one
GUESSERS_KEPT_MAX = 10_000  # names and addresses: 2 MB
SUBJECT_CHARS_MAX = 1_024  # of the subject of a signed token: it is on the log with each command
TOKEN_MS_MAX = 10 * 365 * 86_400_000  # ten years

# --- http -------------------------------------------------------------------------------------
CONNECTIONS_MAX = 4_096  # 100 KB each with its buffers: 400 MB; a client of ours has 128 at most
CONNECTIONS_PER_ADDRESS_MAX = 1_024  # eight of our clients; four addresses fill a node
HEAD_BYTES_MAX = 64 * KIB  # request line and headers; a signed token with many groups has 16 KiB
HEADERS_MAX = 100  # clients send ten; a chain of proxies adds some
REQUEST_TARGET_BYTES_MAX = 8 * KIB  # the longest name, percent-encoded, has 2.4 KiB
HEAD_MS_MAX = 10_000  # to send a head, from its first byte or from the start of the connection
BODY_GRACE_MS = 30_000  # to send a body ...
BODY_BYTES_PER_SECOND_MIN = 64 * KIB  # ... and a second more for each of these
DRAIN_MS_MAX = 30_000  # without reading a byte of an answer
SLOW_CLIENTS_BYTES_MAX = 128 * MIB  # unread answers and pipelined requests, in total
SENT_AHEAD_BYTES = 384 * KIB  # ... for one connection: one read, and 80 requests of 1.5 KB

# --- content over http ------------------------------------------------------------------------
CONTENT_PIECE_BYTES_MAX = 4 * MIB  # of a blob, in one request: what a client and a node hold of it
CONTENT_BLOB_BYTES_MAX = 65_536 * MIB  # S3 takes 78 GiB in parts of BLOB_PART_BYTES
CONTENT_BLOBS_ASKED_MAX = 10_000  # in one request: 1 MiB of names
CONTENT_STATUSES_MAX = 10_000  # in one report: 2 MiB
CONTENT_METADATA_CHARS_MAX = 65_536  # of the names and values that a package carries
CONTENT_UPLOADS_MAX = 256  # unfinished ones at once: a publisher has one
CONTENT_UPLOAD_KEPT_MS = 86_400_000  # an unfinished upload can continue for this long
CONTENT_UPLOAD_ATTEMPTS_MAX = 3  # by a publisher, if members with a part of it are lost
CONTENT_UPLOAD_BYTES_PER_SECOND_MIN = 4 * MIB  # the minimum rate of a store

# --- members ----------------------------------------------------------------------------------
MESSAGE_BYTES_MAX = APPEND_BYTES_MAX + 1 * MIB  # an append to a replica, with its metadata
FRAME_BYTES = 1 * MIB  # messages of one turn share frames of about this size; a larger one is alone
MEMBER_BYTES_MAX = 32 * MIB  # sent to one member and not yet answered: 30 ms at 1 GB/s
MEMBER_BUSY_RETRY_MS = 50  # beyond it, retry later: the above and a round trip
CALL_BYTES = 512  # overhead of an unanswered call: 65,536 calls at most
PROCESSES_MAX = 64  # of one node on one machine, each with an interpreter and a store: 80 MB
REBALANCE_READ_BYTES = 64 * KIB  # of each copied log at a time: 16 MiB at 256 partitions
REBALANCE_SPARE_BYTES = 16 * MIB  # overhead of a member: two segments, files of state
MEMBER_RESTART_MS_MIN = 100  # before a process that ended is restarted; it doubles up to ...
MEMBER_RESTART_MS_MAX = 30_000  # ... this, for one that ends repeatedly
MEMBER_SETTLED_MS = 60_000  # a process that has run for this long is restarted at once
MEMBER_STOP_MS_MAX = 30_000  # that a process may take for an orderly stop: its last snapshot
COLLEAGUE_MS_MAX = 1_000  # that a process may take to report its health or metrics
MEMBER_TICK_MS = 1_000  # how often a connection is checked; one message a second when idle
MEMBER_SILENT_TICKS_MAX = 5  # without a byte, though one was requested: broken after 6 s
HELLO_MS_MAX = 5_000  # to connect, to prove a key and to say hello
HELLO_BYTES_MAX = 4 * KIB  # names, versions, or the reason of a refusal: what a stranger may send
STRANGERS_MAX = 64  # connections without a completed handshake; 0.5 MB with their buffers
RECONNECT_MS_MIN = 20  # a restarted member is found soon ...
RECONNECT_MS_MAX = 2_000  # ... an absent one is tried every two seconds
OWNER_WAIT_MS_MAX = (
    5_000  # that a command waits for a partition on the move: ten take-overs of 0.5 s
)
OWNER_RETRY_MS = 50  # how often it is retried meanwhile, even without news
OWNER_WAITING_COMMANDS_MAX = 20_000  # waiting commands: 40 MB at 2 KB each
UNIX_PATH_BYTES_MAX = 107  # of a socket: the limit on Linux

# --- coordination -----------------------------------------------------------------------------
COORDINATION_ATTEMPTS_MAX = 64  # for a guarded write: this many members may start at once
COORDINATION_RETRY_MS = 500  # before a member whose lease expired registers again
COORDINATION_CUTS_KEPT = 128  # in etcd: 8 s at 16 a second, 1.5 MiB if all of 4,096 logs move
COORDINATION_COMPACT_CUTS = 256  # of history between compactions: 16 s, 3 MiB of such cuts
COORDINATION_LEASE_MS = 6_000  # then a dead member's place is free; renewed three times as often
ETCD_CALL_MS_MAX = 2_000  # ten times the slowest write seen on a healthy server
ETCD_CONNECT_MS_MAX = 1_000  # to one server, before the next one is tried
ETCD_RECONNECT_MS_MAX = 1_000  # between attempts to reach a server
ETCD_PING_MS = 10_000  # an idle connection is probed; etcd allows one probe in 5 s
ETCD_ANSWER_BYTES_MAX = 64 * MIB  # 4,095 chains of 100 ranges each are half of that
ETCD_WATCH_RETRY_MS = 100  # before a broken watch is restarted; it doubles up to ...
ETCD_WATCH_RETRY_MS_MAX = 2_000

# --- taking over ------------------------------------------------------------------------------
TAKE_OVER_MS_MAX = 5_000  # for a quorum to promise and to hold the tail; then it is retried
TAKE_OVER_RETRY_MS_MIN = 10  # before a disk that did not answer is asked again: a round trip or ...
TAKE_OVER_RETRY_MS_MAX = 200  # ... two ticks at most, in which others notice the silence, too
TAKE_OVER_HEAL_MS = 500  # that a fenced owner leaves to its successor: as long as one may take
HAND_OVER_MS_MAX = 5_000  # for a quorum to hold all that an owner sent, before it gives up
# --- the cluster ------------------------------------------------------------------------------
CLUSTER_TICK_MS = 62  # of connections between members: a sixteenth of a second, as cuts are made
CLUSTER_SILENT_TICKS_MAX = 15  # without a byte, then a member counts as lost: after a second
CLUSTER_LOOK_MS = 250  # how often placement is checked, even without news
CLUSTER_SETTLE_MS = 1_500  # after its start a member takes no unheard member for lost
CLUSTER_ACTOR_MS = 500  # without an owner and without news: then any replica takes over
CLUSTER_CALM_MS = 1_000  # without a change of members, before disks change: 16 ticks
CLUSTER_MOVES_MAX = 8  # planned moves of one member at once: each closes a partition for some 10 ms
CLUSTER_RETRY_MS_MIN = 20  # after a refused take-over: the others notice the loss as we do
CLUSTER_RETRY_MS_MAX = 2_000  # a take-over that fails repeatedly is tried every two seconds
CLUSTER_BEHIND_MAX = 1_000  # records that a standby may lack to become the owner: 10 ms
CLUSTER_FOLLOW_MS = 1_000  # before a standby that stopped follows its log again
CLUSTER_READ_MS = 5_000  # how often members and chains are read from etcd without a hint
CLUSTER_TEND_MS = 10_000  # how often owners check closed ranges: copying them takes as long
CLUSTER_REMEMBER_MS = 1_000  # after which a chain that was read is in a file: 1 MB for 4,096
CLUSTER_MEET_MS_MAX = 2_000  # until other members are asked for cuts: they connect within a second
CLUSTER_REPAIR_MS_MAX = 10_000  # for a member to report its chains: 4,096 chains are 2 MB
CLUSTER_LEFT_MAX = 16  # partitions released at a time: 16 notes and deletions, some 200 ms
CUTS_LISTED_MAX = 1_000  # in one answer: a minute of them, 150 KB
CLUSTER_START_MS_MAX = 5_000  # that a start waits until all partitions have a live owner
CLUSTER_DRAIN_MS_MAX = 30_000  # that a stopping member takes to hand everything over

# --- members over a broker ----------------------------------------------------------------------
BROKERED_FEED_MS = 10_000  # before a standby without a state looks for a snapshot again
BROKERED_KEPT_MS = 10_000  # how long a member that left the group is still reached: broker restarts
BROKERED_DRAIN_MS = 1_000  # between requests of a draining member to move its partitions
BROKERED_MOVE_MS_MAX = 10_000  # to wait for a requested move: one takes some 200 ms

# --- the journal of a cluster -----------------------------------------------------------------
CLUSTER_MARKS_MS = 62  # how often owners report their acknowledged offsets: once a tick
CLUSTER_SEND_BYTES = 4 * MIB  # of appends in one message: replicas sync it while the next is sent
CLUSTER_FETCH_BYTES = 4 * MIB  # of a log, fetched from another member at a time: 10 ms to store
CLUSTER_HELD_BYTES = 4 * MIB  # appends that are held while earlier ones are fetched
CLUSTER_RETRY_MS = 500  # before entries that no member had are requested again

# --- Kafka's journal --------------------------------------------------------------------------
KAFKA_NAME_CHARS_MAX = 48  # with a topic of 200 and a dot it fits Kafka's limit of 249
KAFKA_DELIVERY_MS = 20_000  # of a flight, with resends: a broker returns within ten seconds
KAFKA_OPEN_MS_MAX = 15_000  # for the first answer of a broker
KAFKA_NOTICE_MS = 3_000  # then a start reports what it waits for: brokers answer within ms
KAFKA_ASK_MS_MAX = 10_000  # for any other answer of a broker
KAFKA_ASK_AGAIN_MS = 20  # a broker that is about to lead a partition needs a moment
KAFKA_READ_MS_MAX = 30_000  # for a record that exists: longer than a restart takes
KAFKA_FETCH_WAIT_MS = 500  # how long a broker waits for new records before it answers
KAFKA_LOOK_WAIT_MS = 10  # the same for single reads of existing records
KAFKA_QUEUE_BACKOFF_MS = 5  # a full queue of 20,000 records drains in 40 ms: retry soon
KAFKA_POLL_MS = 200  # how often listening threads check whether they should stop
KAFKA_FOLLOW_POLL_MS = 50  # how often they check what is followed; records arrive at once
KAFKA_PROBE_MS = 500  # how often an unreachable cluster is probed
KAFKA_RETRY_MS = 250  # before a failed request is retried
KAFKA_REFRESH_MS = 1_000  # how often the ends of other owners' partitions are queried
KAFKA_FLIGHT_BYTES_MAX = 16 * MIB  # of appends sent together, like those that share a sync
KAFKA_FLIGHT_RECORDS_MAX = 65_536  # 300 B each: as many as fit
KAFKA_LINGER_MS = ((512, 2.0), (32, 0.5))  # of a flight of so many records: 1 µs each, and room
KAFKA_RESENDS_MAX = 16  # of a flight at another offset: each means that another writer was first
KAFKA_LATE_MS_MIN = 100  # an append that is this much later than the first is reported separately
KAFKA_RECENT_BYTES = 1 * MIB  # of a followed partition, shared by its followers
KAFKA_CONSUMERS_IDLE_MAX = 8  # kept at their last position; each has 4 threads and 8 MiB at most
KAFKA_CONSUMER_IDLE_MS = 30_000  # then an idle consumer is closed
KAFKA_THREADS_MAX = 16  # that wait for brokers: the number of concurrent reads
KAFKA_BATCH_BYTES = 1_000_000  # of records on the wire: just below the default limit of a topic
KAFKA_RECORD_OVERHEAD_BYTES = 100  # of a batch with one record: 61, a mark of 21, lengths

# --- groups -----------------------------------------------------------------------------------
GROUP_TICK_MS = 62  # commits of one tick share a message: a sixteenth of a second
GROUP_ANSWER_MS_MAX = 5_000  # for a member to answer a rebalance: 40 round trips of 125 ms
GROUP_RESEND_MS = 1_000  # a message that was not read back after 16 ticks counts as lost
GROUP_RETRY_MS_MIN = 1_000  # before a parked partition is retried; it doubles up to ...
GROUP_RETRY_MS_MAX = 60_000  # ... this; after a run of this length it starts over
GROUP_MOVES_MAX = 4  # partitions that a member drains at once to even out the load
GROUP_PARTITIONS_MAX = 100_000  # 35 B each and a token of 8: all of them fit an entry of 4 MiB
GROUP_ERROR_CHARS_MAX = 1_000  # of a parked partition's error: all of them are in each epoch
GROUP_CHECKPOINT_BYTES = 256 * KIB  # of messages before the leader's checkpoint: 5,000 changes ...
GROUP_CHECKPOINT_RATIO = 4  # ... and this many times its size: a quarter more bytes at most
GROUP_SESSION_MS = 10_000  # without a heartbeat; longer than the restart of a node
GROUP_SESSION_MS_MIN = 500  # eight ticks: two heartbeats may be lost
GROUP_SESSION_MS_MAX = 300_000
GROUP_JOIN_MS = 62  # joins and leaves of this time share a generation: ten programs start as one
GROUP_LOOK_MS = 2_000  # how often members in etcd are read without a hint, which may be lost
GROUP_PAUSE_MS = 100  # before a failed log or membership is retried; it doubles up to ...
GROUP_PAUSE_MS_MAX = 2_000
GROUP_STALE_MS_MAX = 5_000  # without the log, work stops: by then others may own the partitions
GROUP_STOP_MS = 30_000  # for work to release a partition before it is cancelled
GROUP_SENDS_MAX = 4  # messages that wait for a slow log; newer changes share the next one
GROUP_RECENT_BYTES = 1 * MIB  # of the end of a log, in memory: readers are seconds behind
GROUPS_MAX = 256  # of a node; each has a topic with files of 4 MiB and more
GROUP_PROGRAMS_MAX = 1_000  # members of one group: 60 KB of names in each generation
GROUP_NAME_CHARS_MAX = 100  # a part of a topic's name, which may have 200
GROUP_MEMBER_CHARS_MAX = 100
GROUP_TOKEN_CHARS_MAX = 200
GROUP_CARD_BYTES_MAX = 4 * KIB  # of a member's own data: addresses and a key
GROUP_MESSAGE_BYTES_MAX = 4_000_000  # just below an entry of a journal

# --- tasks ------------------------------------------------------------------------------------
PAYLOAD_BYTES_MAX = 3 * MIB  # leaves room for the rest of a record of ENTRY_BYTES_MAX
REQUEST_BYTES_MAX = 12 * MIB  # payloads, results, errors: two with their events fit an append
TASKS_PER_SUBMIT_MAX = 10_000  # one atomic append; about 100 ms of work
BULK_ITEMS_MIN = 64  # of a submission: the way to another process, 70 us, is 1 us for each
JOBS_PER_ACTIVATION_MAX = 10_000
JOBS_PER_REPORT_MAX = 10_000  # completions or failures in one request
# Headers of a task: W3C's traceparent takes 55 bytes, its tracestate 512 and its baggage the rest.
HEADERS_MAX = 64  # W3C allows 64 entries of baggage, and each may be a header of its own
HEADERS_BYTES_MAX = 8_192  # of all names and values in UTF-8: as much as W3C allows for baggage
NAME_CHARS_MAX = 200  # task types, worker names, idempotency keys, schedule ids
PRIORITY_MAX = 1_000_000  # and -PRIORITY_MAX at the least
RETRIES_MAX = 1_000
ERROR_CHARS_MAX = (
    8_192  # an error message with its traceback; the middle of a longer one is cut out
)
LEASE_MS_MAX = 86_400_000
WAIT_MS_MAX = 300_000  # of a long poll; longer waits take several
PAGE_ITEMS_MAX = 10_000
SPAN_MS_MAX = 10 * 365 * 86_400_000  # delays, windows and times to keep: ten years

# --- content distribution ---------------------------------------------------------------------
CONTENT_PUBLISHERS_MAX = 100  # of a node; each has an offset map of CONTENT_QUEUE_BYTES_MAX at most
CONTENT_SUBSCRIBERS_MAX = 1_000  # known to a node: 1 MB of announcements
CONTENT_MESSAGE_BYTES_MAX = 3 * MIB  # of a package on the log: with the rest it fits a record
CONTENT_REASON_CHARS_MAX = 500  # of an import error; it is part of each announcement
CONTENT_PACKAGES_KNOWN_MAX = 10_000  # of a publisher, by their ids: 2 MB
CONTENT_REOPEN_BYTES = 64 * MIB  # of packages that are read at a start for their ids: 0.2 s
CONTENT_QUEUE_ENTRIES_MAX = 100_000  # of a publisher, in the queues' shared map: 10 MB
CONTENT_QUEUE_BYTES_MAX = 16 * MIB  # ... or so much, where packages have many paths
CONTENT_QUEUE_BLOCK_ENTRIES = 128  # of the map, packed together: 50 us to unpack all of them
CONTENT_RECENT_BYTES = 32 * MIB  # of topics, cached for readers that follow one another
CONTENT_OLD_BYTES = 256 * KIB  # of old ones, read at once at least: 128 places have room there
CONTENT_BATCH_MESSAGES_MAX = 1_000  # in one append, of all senders together
CONTENT_BATCH_BYTES_MAX = 8 * MIB  # ... or so much: 8 ms of writing at 1 GB/s
CONTENT_WAKE_MS = 5  # how often readers are woken at most: a hundred of them take 1 ms
CONTENT_GATHER_MS = 250  # reports of subscribers in this time share a write: 4 appends a second
CONTENT_REMEMBER_MS = 300_000  # how often known subscribers are written again, so that older ...
CONTENT_REMEMBER_ENTRIES = 20_000  # ... discoveries are not needed; or after so many: 4 MB to read
CONTENT_LOOK_MS = 60_000  # how often an idle service checks for expired data
CONTENT_SILENT_INTERVALS = 3  # without an announcement, then a subscriber counts as dead
CONTENT_SUBSCRIBER_KEPT_MS = 30 * 86_400_000  # that log and events are kept for a dead subscriber
CONTENT_BLOCKED_ATTEMPTS = 3  # at the head of a queue, then it is blocked
CONTENT_BACKLOG_FREE = 1_000  # packages of lag without back-pressure; from there on
CONTENT_BACKLOG_FULL = 2_000  # ... publishing slows down, and here it takes
CONTENT_DELAY_MS_MAX = 20_000  # ... this long
CONTENT_STALLED_MS = 30_000  # a subscriber without progress for this long causes no back-pressure
CONTENT_PRESSURE_LOOK_MS = 100  # the maximum age of the figure for back-pressure
CONTENT_ERRORS_MAX = 10_000  # in the error queue of a subscriber; older ones are forgotten
CONTENT_STATUSES_KNOWN_MAX = 256  # of a subscriber, to recognise repeated reports
CONTENT_SNAPSHOTS_KNOWN_MAX = 100  # the latest ones, for new subscribers to start from
CONTENT_EVENTS_LOOK_MAX = 16  # reads of the log for a page of events: a publisher may have few
CONTENT_SUBSCRIBERS_MEASURED_MAX = 500  # in metrics; four series each

# --- content: subscribers ----------------------------------------------------------------------
CONTENT_PREFETCH_PACKAGES_MAX = 8  # in one commit, of any size: an eighth of the syncs
CONTENT_SMALL_PACKAGES_MAX = 64  # ... if they are small: a commit costs as much as ten of them
CONTENT_SMALL_PACKAGES_BYTES = 512 * KIB  # ... all together: 2 ms
CONTENT_PREFETCH_BYTES = 1 * MIB  # read ahead: one of the largest in the log, or many small ones
CONTENT_GATHERED_PACKAGES_MAX = 1_000  # in one commit, if commits have to wait for one another
CONTENT_GATHERED_BYTES = 8 * MIB  # ... and read ahead for it
CONTENT_ANNOUNCE_MS = 10_000  # a subscriber announces its progress at least this often
CONTENT_ANNOUNCE_MS_MIN = 200  # ... and at most: 100 subscribers cost 500 small entries/s
CONTENT_RETRY_MS_MIN = 5_000  # before a failed package is retried; it doubles up to ...
CONTENT_RETRY_MS_MAX = 900_000  # ... 15 minutes
CONTENT_POLL_MS = 30_000  # of a read that waits at the end of a topic: two a minute when idle
CONTENT_WAIT_MS = 1_000  # before a precondition that returned WAIT is checked again
CONTENT_SKIPPED_MAX = 10  # skipped packages before the offset is saved: at most this many again
CONTENT_READY_IDLE_MS = 10_000  # at the end of the log for this long: ready
CONTENT_READY_FORCED_MS = 300_000  # ... or running for this long
CONTENT_STATUSES_WAITING_MAX = 1_000  # not reported yet; 100 bytes each, written with each commit
CONTENT_COMMANDS_KEPT_MAX = 1_000  # ids of executed commands: 40 KB of a note
CONTENT_FAILED_KEPT_MAX = 1_000  # failed packages that can be retried
CONTENT_TOUCHED_MAX = 1_000  # of its paths that newer packages changed; beyond it, all of them
CONTENT_SHARED_BYTES_MAX = 32 * MIB  # of parsed packages that subscribers of one process share
CONTENT_SEED_FRAME_BYTES_MAX = 64 * MIB  # of a snapshot: a node, or a thousand failed packages

# --- the order of a cluster ----------------------------------------------------------------------
TICKS_PER_SECOND = 16  # a guarded write in etcd takes 2 ms, 8 at the worst: an eighth of a tick
RING_DELAY_TICKS = 3  # 188 ms between two members of the ring: etcd's worst writes take 170
CUT_SHARES = 64  # each cut has the positions of one in 64 logs: 64 of 4,096, 320 bytes
CUT_LOGS_MAX = 65_536  # sixteen topics of 4,096 partitions
CUT_BYTES_MAX = 1 * MIB  # not compressed: 65,536 logs of 6 bytes. etcd takes 1.5 MiB
CUT_NAME_BYTES_MAX = 200  # of a writer, a nonce or a topic
PUBLISHER_LOOK_SECONDS = 1.0  # how often a member without a turn reads: hints may be lost
PUBLISHER_RETRY_SECONDS_MAX = 2.0  # pauses double from a tick on while etcd is unreachable
TICK_LATENESS_BUCKETS = (0.004, 0.008, 0.016, 0.032, 0.0625, 0.125, 0.25, 0.5, 1.0, 4.0)  # seconds
CUTS_READ_MAX = 256  # stored cuts in one read: 3 MB of the largest, 15 KB of small ones
CUTS_KEPT_BYTES = 256 * MIB  # by each member: 3 days when idle, 20 minutes of 4,096 logs
CUTS_WAITING_MAX = 1_024  # not yet written: 64 s of a full disk, 12 MB of the largest
CUTS_KEEP_SECONDS = 1.0  # between writes of cuts to disk: etcd has those of the last 8 s
ORDER_SPANS_MAX = 1_000  # of the order in one answer, and the rest of the last cut: 100 KB of JSON
CUT_SMALL_BYTES = 128  # below this, compression gains nothing

# --- pipeline ---------------------------------------------------------------------------------
FILTER_CONDITIONS_MAX = 256  # more than people write; DuckDB needs about 40 ms for them
FILTER_DEPTH_MAX = 4  # an $or in an $or: two is all that fields that are ANDed ever need
FILTER_VALUES_MAX = 10_000  # in all lists of a filter: one page of keys
FILTER_TEXT_CHARS_MAX = 8_192  # the longest text of a column that people search for: an error
FILTER_PATTERN_CHARS_MAX = 1_000  # a match takes time in proportion to it, for every row
SORT_COLUMNS_MAX = 10  # more have no effect: the key decides long before
CURSOR_CHARS_MAX = 16_384  # ten texts of 256 characters and the key, in base64
PAGE_OFFSET_MAX = 1_000_000  # rows that are sorted only to be skipped; cursors have no such limit
TOTAL_ITEMS_MAX = 100_000  # counted for a page: 10 ms; beyond it the total is "or more"
SELECTION_LOOK_MS = 50  # how often to check for requests: a directory of a few files, 20 us
SELECTION_TABLES_WAIT_MS = 20_000  # for the tables to reach the position of a request
SELECTION_ATTEMPTS_MAX = 3  # for a request that throws; then its sender gets the error

# --- console ----------------------------------------------------------------------------------
CONSOLE_FORM_BYTES_MAX = 8 * MIB  # variables may have 4 MiB, and a form writes a byte as three
CONSOLE_FORM_FIELDS_MAX = 5_000  # a mapping of elements has one for each; definitions have hundreds
CONSOLE_TICK_MS = 1_000  # how often live numbers are read while a tab is open: 5 ms of work each
CONSOLE_PING_MS = 15_000  # proxies close a stream that is silent for longer
CONSOLE_LIST_ITEMS = 50  # a page of a list: what a screen and a half shows
CONSOLE_LIST_MS_MAX = 300  # for a list of the state whose filter matches few rows: 100,000 read
CONSOLE_LOG_BYTES_MAX = 4 * MIB  # of the log, read for a time line at once: 30,000 records
CONSOLE_DEFINITIONS_KEPT_MAX = 200  # parsed and ready to draw: 100 KB each
SESSIONS_PER_OWNER_MAX = 20  # of the console: browsers of one person; the oldest is signed out
SESSIONS_CLEARED_MAX = 20  # expired sessions, with each new one: there are never many more
OIDC_FETCH_SECONDS_MAX = 10  # for an answer of the identity provider
OIDC_ANSWER_BYTES_MAX = MIB  # tokens with hundreds of groups have some 20 KB
OIDC_FLOW_SECONDS = 600  # from the redirect to the identity provider to the return
OIDC_KNOWN_SECONDS = 300  # how long the provider's configuration is cached
CONSOLE_HISTORY_SAMPLES = 180  # of the small charts: three minutes

# --- metrics ----------------------------------------------------------------------------------
METRIC_TYPES_MAX = 64  # types of jobs shown by name, others as "other": 50 samples each, 4 us each
METRIC_WORKERS_MAX = 10_000  # workers whose last request is remembered: 2 MB
METRIC_WORKER_MS = 60_000  # a worker without a request for this long is not counted
WAITING_JOBS_LOOKED_AT = 4  # of each priority, for the age of the longest wait
WAITING_ROWS_REPACKED = 4_096  # of format 1, at a time while a partition is opened: 10 ms
WAITING_PRIORITIES_LOOKED_AT = 4  # of a type; each is a read of the store, 15 us
