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
READ_BYTES_MAX = 1 * MIB  # what one read hands out: large enough to amortise, small enough to hold
TOPIC_NAME_BYTES_MAX = 200
APPEND_BYTES_MAX = 64 * MIB  # one append is one write and one frame; sixteen of the largest entries
EAGER_COMMIT_BYTES = 4 * MIB  # enough to keep the disk busy: larger commits are hardly faster
THREAD_COMMIT_BYTES_MIN = 512 * KIB  # below it a sync is over before a thread has woken up
COMMIT_BYTES_MAX = (
    16 * MIB
)  # appends that share a sync: 16 ms of writing at 1 GB/s, then the loop breathes
SEGMENT_BYTES_FIRST = 4 * MIB  # 5 ms to fill: a fresh topic opens at once; each next one doubles
SPARE_SEGMENTS_MAX = 4  # discarded files kept for reuse: 256 MiB that need no new blocks
SEGMENTS_OPEN_MAX = 16  # files and offset points kept at hand: 16 x 1.5 MiB at 256 partitions
STREAM_POLL_MS_MIN = 2  # how soon another process's stream looks again after it saw something
STREAM_POLL_MS_MAX = (
    100  # and how seldom when nothing comes: 10 looks/s of 20 us are 0.02% of a core
)
REBUILD_RETRY_MS = 1_000  # a state of 1 GB is rebuilt in 10 s or so
DISK_FULL_RETRY_MS = 1_000  # room comes from people or retention, neither is faster
RETENTION_INTERVAL_MS = 60_000  # how often old segments are looked for: they are hours old
LATE_APPEND_MS = 5_000  # how long a node that closes waits for an append: as long as for a quorum

# --- blobs ------------------------------------------------------------------------------------
BLOB_NAME_BYTES_MAX = 500  # S3 takes 1,024 with the prefix
BLOB_PIECE_BYTES = 1 * MIB  # of a blob, handed out in one go
BLOB_PART_BYTES = 8 * MIB  # of an upload to S3, which takes 10,000 parts: 78 GiB a blob
BLOB_PARTS_IN_FLIGHT_MAX = 2  # with the one that is being filled, 24 MiB of memory
BLOB_RETRIES_MAX = 8  # of a request: pauses of 0.1 s that double, up to
BLOB_RETRY_MS_MAX = 30_000  # ... this long in all; after that the caller gets Unavailable

# --- content ----------------------------------------------------------------------------------
CONTENT_NAME_BYTES_MAX = 255  # of a part of a path: what the file systems of Linux and macOS take
CONTENT_PATH_BYTES_MAX = 2_048  # half of what Linux takes, so that a folder can be before it
CONTENT_DEPTH_MAX = 100  # parts of a path: people nest a dozen; each costs a call to the disk
CONTENT_PROPERTIES_BYTES_MAX = 4 * MIB  # of a node, as of a record; what is larger is a binary
CONTENT_CHUNK_BYTES = 1 * MIB  # of a binary in a row: two or three of them are in memory
CONTENT_BUFFER_NODES_MAX = 1_000  # of a change set before its transaction gets them: 5 ms, ...
CONTENT_BUFFER_BYTES_MAX = 4 * MIB  # ... or so many bytes of properties
CONTENT_STORE_BUSY_MS_MAX = 30_000  # for another process to end its change set of the same store
CONTENT_STORE_CONNECT_MS_MAX = 10_000  # for PostgreSQL to answer a new connection
CONTENT_GRACE_MS = 1_000  # that a reader may take with the files of a directory it has resolved
CONTENT_SYNCS_MAX = 7  # files synced one by one; from eight on syncing the disk takes a third
CONTENT_CHECKPOINT_BYTES = 64 * MIB  # what SQLite's log is cut to when its content is in the file

# --- packages of content ----------------------------------------------------------------------
CONTENT_INLINE_BYTES_MAX = 800_000  # a package on the log: a fifth of a record; above it, a blob
CONTENT_BINARY_BYTES_MIN = 64 * KIB  # from here on a binary is a blob, which other packages share
CONTENT_PATHS_MAX = 1_000  # that a package names
CONTENT_PATHS_BYTES_MAX = 256 * KIB  # of them: twice that, if all are deep, an eighth of a record
CONTENT_ENTRIES_MAX = 250_000  # nodes of a package: 20 s of work, which no other package can pass
CONTENT_MANIFEST_BYTES_MAX = 128 * MIB  # 500 B for each of them; read and written in blocks
CONTENT_BLOCK_BYTES = 64 * KIB  # of entries that are written together: 500 small ones
CONTENT_BLOCK_BYTES_MAX = 512 * KIB  # decoded at once: 32 MiB, if all of it are empty maps
CONTENT_BINARIES_MAX = 9_000  # blobs of a package: 730 KB of names, which fit its message
CONTENT_TOTAL_BYTES_MAX = 256 * 1024 * MIB  # of a package and its binaries; S3 takes 78 GiB a blob
CONTENT_BLOB_LOOKS_MAX = 5  # at a store that does not have a blob yet, with pauses that double ...
CONTENT_BLOB_LOOK_MS = 100  # ... from this one on: 1.5 s, then the subscriber tries again later
CONTENT_CLEANUP_INTERVAL_MS = 12 * 3_600_000  # what nobody refers to waits half a day longer
CONTENT_CLEANUP_SLICE = 50  # blobs removed while publications with blobs wait: 1 s in S3
CONTENT_MARK_SHARDS = 256  # files of marks: 30 KB each, if there are 100,000 blobs
CONTENT_HEADS_AT_ONCE = 8  # blobs of a publication that are looked for: 9,000 take 20 s in S3
CONTENT_BLOB_LATE_MS = 600_000  # a blob may come so long after its package before that one fails
CONTENT_BLOBS_KNOWN_MAX = 100_000  # that were asked about just now and need no further look: 15 MB

# --- engine -----------------------------------------------------------------------------------
STEP_COMMANDS_MAX = 4_096  # about 40 ms of work: live commands never wait longer behind a step
STEP_DUE_MAX = 512  # commands that time gives to one step: 1 ms to look them up
STEP_MOVES_MAX = 1_000  # tokens moved by follow-ups and due commands in one step: 10 ms
STEP_MS_MAX = 10  # ... or so much time: then live commands pass
STEP_LIVE_MS_MAX = 2  # ... while live commands wait for the same step
LEASE_EXPIRIES_MAX = 20  # a job that outlives 20 workers kills them: a person has to look
REQUEST_KEPT_MS = 600_000  # clients that heard UNKNOWN ask again within their deadline: minutes
REQUESTS_KEPT_MAX = 50_000  # on each partition: 80 a second for that long, about 10 MB
REQUEST_ITEMS_MAX = 100  # with an id of their own: 10 us each at the node, as much as a task costs
REQUEST_REPLY_BYTES_MAX = 65_536  # larger answers are not kept: 64 KB each would be 3 GB
PURGE_ROWS_MAX = 1_000  # about 2 ms a step for forgetting
SCHEDULE_CATCH_UP_MAX = 1_000  # missed due times that are made up for: 50 ms of work, half a MB
SCHEDULE_LATE_MS_MAX = 60_000  # a due time that is later than this was missed
SCHEDULE_INTERVAL_MS_MIN = 100  # schedules are for people's times, not for polling
COMMANDS_IN_FLIGHT_MAX = 20_000  # by partition: about 0.5 s of work; beyond it, come back later
DUE_BUG_PAUSE_MS = 1_000  # a due command that throws stays due: it is tried again after this pause
DUE_BUG_PAUSE_MS_MAX = 60_000  # the pause doubles up to this: 1,440 rejections a day on the log
SETTLE_MS = 10_000  # after an unclean start: for so long commands that come back are noted
QUARANTINE_COMMANDS_MAX = 100  # remembered as having ended the process: 20 KB
CLOCK_JUMP_MS = 1_000  # a clock that is off by more at once was set: it is logged and counted
CLOCK_SLEW_PERCENT = 10  # of the time that passes: a difference of an hour is gone after ten hours
CLOCK_ADOPT_MS = 3 * 3_600_000  # more than this forward is time that passed: a machine that slept
ENDED_KEPT_MAX = 100_000  # tasks, instances or incidents that ended, on a partition: 30 MB
ENDED_RECORDS = 16  # of the log that are read and kept for each of them: a task has 6, or more ...
ENDED_BEGUN_RATIO = 4  # things in mind that have not ended, for each that is kept: 150 B
ENDED_LOG_BYTES_MAX = 256 * MIB  # a log that is larger is not kept for them: 4 segments
ENDED_LOOK_BYTES_MAX = 32 * MIB  # of a partition's log that a question reads: 0.1 s
ENDED_READ_BYTES = 32 * KIB  # ... in one go: 400 records, 1 ms
SCAN_RECORDS_MAX = 20_000  # of the log that one request for records looks at: 50 ms
SCAN_BYTES_MAX = 8 * MIB  # ... or so much, where they are large
SCAN_SLICE_RECORDS = 2_000  # ... of which it keeps a partition busy with so many at once: 5 ms
SCAN_SLICE_BYTES = 1 * MIB
SCAN_READ_BYTES = 64 * KIB  # ... in one read: 500 records, 1 ms
SCAN_ANSWER_BYTES = 1 * MIB  # found records are handed out when they are so much
SCAN_SPAN_MIN, SCAN_SPAN_MAX = 64, 1_024  # records that are read at once on the way back
SCAN_PARTITIONS_MAX = 256  # that are read together: a cursor has an offset of each, 2 KB
TRACE_CAUSES_MAX = 64  # commands that led to one another; they are few
TRACE_EFFECTS_MAX = 200  # records that are shown as what came of one
TRACE_RECORDS_MAX = 2_000  # of the log that are looked at for them: 3 ms
ERROR_LINE_CHARS_MAX = 200  # of an error, in a list and with the end of an incident
QUERY_ROWS_MAX = 2_000  # that one look of a list at a partition walks over: 6 ms
STORE_ROWS_MAX = 65_536  # changed rows in memory before the store gets some: 32 MiB
STORE_WRITE_ROWS = 16_384  # ... that are one write, which cannot be divided: 10 ms
STORE_SLICE_ROWS = 2_048  # of them that are prepared in one go: 1.5 ms
STORE_INTERVAL_MS = 5_000  # ... or after this time: most rows are gone by then
SNAPSHOTS_KEPT = 2  # one to fall back on when the newest is damaged
DAMAGED_KEPT = 2  # states that were set aside for inspection: a bad disk makes many
WALK_ROWS = 1_000  # rows of the state that are checked in one go: 0.2 ms
COPY_BYTES = 1 * MIB  # of a snapshot, copied or read back in one go: 1 ms beside the loop
SCRUB_SLICE_BYTES = 64 * KIB  # of a segment, checked in one go: 200 small frames, 0.8 ms
SCRUB_PAUSE_MS = 5  # between two of these: 200,000 rows/s or 12 MB/s of the log, about 5% of a core
SCRUB_INTERVAL_MS = 3_600_000  # from one reading of everything at rest to the next
SNAPSHOT_NEWER_MIN = 100_000  # records that a stored one saves to replay: a second, as to load it
SNAPSHOT_SHARE_MAX = 10  # a snapshot that takes a minute comes every ten minutes at the most
BACKUP_PIECE_BYTES = 4 * MIB  # of a file, known by its hash: 8 KB of a manifest for each 512 MiB
BACKUP_EDGE_BYTES = 4 * KIB  # of a file's end, by which it is known again without reading the rest
BACKUP_PAUSE_MS = 20  # between two pieces: hashing one takes 10 ms beside the loop, a third of it
BACKUP_HOLD_MS_MAX = 2_000  # that all processes of a node may stand still for a common moment
BACKUP_PIN_MS = 60_000  # that a process keeps its files for another one that does not ask for them
BACKUP_KEEP_MS = 10_000  # how often that one asks: five may be lost
BACKUP_WORKING_MS_MAX = 86_400_000  # after a day somebody who works in a target is taken for dead
EXPORT_BLOCK_ROWS = 1_000  # of a partition that is exported, read in one go: 1 ms
EXPORT_BLOCK_BYTES = 256 * KIB  # ... or so much: 1 ms to deflate it
EXPORT_BLOCK_BYTES_MAX = 64 * MIB  # of a block: a row is an ENTRY_BYTES_MAX and little more
TRANSFER_CHUNK_BYTES = 256 * KIB  # of a partition that is sent to another member in one answer
TRANSFERS_MAX = 4  # partitions that a member sends at once: 50 MB/s each, and a scan of the store
TRANSFER_IDLE_MS = 60_000  # one that nobody asks on for is given up; its log is kept for so long
TRANSFER_ATTEMPTS_MAX = 20  # for a chunk, before another member is asked for all of it ...
TRANSFER_RETRY_MS = 500  # ... with so much between them: ten seconds without a connection
STANDBY_RETRY_MS = 500  # before one whose log cannot be read now tries again
INGEST_FILE_BYTES = 64 * MIB  # of rows in one file of RocksDB, as its own files are
REPLAY_BYTES = 4 * MIB  # what one read of the log takes while replaying
SETTLE_BRIEFLY_MS = 100  # that a snapshot waits for steps under way: it does without the rest
STANDBY_ENTRIES = 128  # of a log that a standby applies in one go: 1 ms
STANDBY_PAUSE_MS = 20  # in which it lets more of them gather: a hundredth of a take-over

# --- processes --------------------------------------------------------------------------------
DEFINITION_BYTES_MAX = 1 * MIB  # encoded; with its BPMN file it fits a record
SOURCE_BYTES_MAX = 2 * MIB  # the BPMN file
VARIABLES_BYTES_MAX = 3 * MIB  # set at once: with their names they fit a record
WALK_MOVES_MAX = 1_000  # tokens moved in one step: 10 ms, then live commands pass
WALK_ENDINGS_MAX = 1_000  # elements ended in one step: 20 ms with their jobs
WALK_LOOK_MOVES = 8  # moves between two looks at the clock, for expressions may make them slow
MOVE_BYTES = 1 * KIB  # of variables that count as a move: 10 us to write; 1 MiB for a step
SMALL_VARIABLES_BYTES = 256  # what is less is not weighed: a thousand of them do not matter
EVENT_BYTES_MAX = 3 * MIB  # of variables in one event: with the rest it fits a record
LOOP_MOVES_MAX = 100_000  # moves of a tree of calls without a wait: 1 s of a core, then an incident
WAIT_MS_MIN = 10  # a timer that is shorter is not a wait: a loop of them is a loop without one
WAIT_MOVES = 20  # ... and counts as so many moves: it is a step of its own, of 0.2 ms
HELD_PAUSE_MS = 1_000  # a cycle that may add no more tokens looks again after this time
SCOPE_TOKENS_MAX = 10_000  # in one scope: they double in 14 rounds, then an incident
SCOPE_TOKENS_LOOK = 100  # more than a drawing has: the scopes around are looked at, too
INSTANCE_TOKENS_MAX = 1_000_000  # in nested scopes, if all were like this one: 1 GB of state
INSTANCE_ITEMS_MAX = 1_000_000  # begun in loops that have not ended, of a tree of calls
CALL_DEPTH_MAX = 100  # processes that call one another
IGNORED_PARTS_MAX = 1_000  # of a BPMN file, named in an answer: some 200 bytes each
TREE_INSTANCES_MAX = 1_000_000  # instances that one instance and those it calls have called
TREE_RECURSIONS_MAX = 10_000  # ... of processes that call themselves: 2 s, then an incident
CALLS_EAGER = 8  # calls that follow at once: 10 ms each at worst, then live commands pass
CALL_MOVES = 5  # a call counts as so many moves: it makes an instance
CALL_EAGER_MOVES = 1_000  # ... unless so many moves were made without a wait
LOOP_BITE_ITEMS = 16  # items begun between two looks at the clock
LOOP_EAGER_ITEMS = 4_096  # items of a loop that are active before further ones come slowly
LOOP_PAUSE_MS = 100  # ... one chunk of 256 in this time: a loop of 200,000 is all there in 80 s
RESOURCES_PER_DEPLOYMENT_MAX = 100
ELEMENTS_SHOWN_MAX = 1_000  # of one instance: more than that nobody reads
MODIFY_ELEMENTS_MAX = 10_000  # active elements of an instance that is modified or migrated: 0.2 s
MESSAGE_TTL_MS_MAX = 366 * 86_400_000
PARCEL_PAUSE_MS = 10_000  # how long an acknowledgement may take before parcels are sent again
PARCEL_PAUSE_MS_MAX = 300_000  # the pause doubles up to this

# --- distribution -----------------------------------------------------------------------------
DISTRIBUTIONS_MAX = 100_000  # active at once, by partition: 100 MB of state at 1 KB a command
DISTRIBUTION_PAUSE_MS = 10_000  # how long an acknowledgement may take before a command goes again
DISTRIBUTION_PAUSE_MS_MAX = 300_000  # the pause doubles up to this
DISTRIBUTIONS_IN_FLIGHT_MAX = 256  # without a queue, to one partition: more wait for their turn
RESEND_BYTES_MAX = 8 * MIB  # what one step sends again: two of the largest commands
POSTPONE_MS_MIN = 100  # a partition that has no room is asked again ten times a second at most
DEPLOYMENT_WAIT_MS = 5_000  # a deployment is answered when all partitions have it, or after this

# --- transactions -----------------------------------------------------------------------------
TRANSACTION_OPERATIONS_MAX = 1_000  # done in one step: 40 ms at 40 us each
TRANSACTION_BYTES_MAX = 3 * MIB  # of its operations, encoded: with all keys twice it fits a record
TRANSACTION_PARTITIONS_MAX = 64  # each is two records to prepare, vote, decide and acknowledge
TRANSACTIONS_OPEN_MAX = 1_000  # by partition, decided or prepared there: 10 MB at 10 KB each
TRANSACTION_MS = 30_000  # to be decided, unless it says so: a parcel may be lost twice meanwhile
TRANSACTION_MS_MAX = 600_000  # what it reserves others cannot have: minutes, not hours
PROMISED_RETRY_MS = 20  # for a partition to hear of a commit: a round between two members
TRANSACTION_KEPT_MS = 900_000  # once all is done: longer than REQUEST_KEPT_MS and an eighth more

# --- batch operations -------------------------------------------------------------------------
BATCH_OPERATIONS_MAX = 1_000  # that have not ended, by leading partition: 10 MB at 10 KB a filter
BATCH_OPERATION_BYTES_MAX = 1 * MIB  # filter and plan, encoded: kept by every partition
BATCH_PAGE_ITEMS_MAX = 10_000  # a chunk of 180 KB, far from ENTRY_BYTES_MAX; 2 ms to take it in
BATCH_EXECUTE_ITEMS_MAX = 256  # done in one step: 10 ms at 40 us each
BATCH_EXECUTE_RECORDS_MAX = 1_000  # ... or until they wrote so many: an item may be a large one
BATCH_EXECUTE_BYTES_MAX = 4 * MIB  # ... or so much: an append holds sixteen times as much
BATCH_ATTEMPTS_MAX = 10  # to select a page: about four minutes, then its partition fails
BATCH_RETRY_MS = 1_000  # the pause after the first failed attempt
BATCH_RETRY_MS_MAX = 60_000  # it doubles up to this
BATCH_ERROR_CHARS_MAX = 500  # of an item: those of a step are 512 KB at most
BATCH_PARTITION_ERROR_CHARS_MAX = 200  # 4,095 of them, at four bytes a character, fit a record
BATCH_THROTTLE_MAX = 1_000_000  # items/s: more than a node can do
BATCH_SELECTIONS_MAX = 4  # pages being selected at once, by partition: a slow one blocks no other
BATCH_LIVE_MS = 1_000  # after a live command: for so long items are done in small portions
BATCH_LIVE_PORTION_MS = 1  # ... that are so much work: what a live command may wait, and a sync
BATCH_IDLE_PORTION_MS = 20  # how much work a portion is while nobody else wants anything
BATCH_LIVE_STORE_ROWS_MAX = 512  # meanwhile, rows in memory before the store gets them: 1 ms
BATCH_STUCK_MS = 1_000  # a partition that has not answered for so long is not waited for
BATCH_GAP_LOOK_MS = 1  # how often it is looked whether live commands are waiting
BATCH_GAP_WAIT_MS = 50  # a portion waits for a gap so long at most: at the worst, 4% of a busy node
BATCH_REFUSED_PAUSE_MS = 1_000  # a refused command of the driver: one rejection a second on the log
BATCH_THROTTLE_STEP_MS = 100  # items of so much time are done together: ten small steps a second
BATCH_SELECTION_WAIT_MS = 30_000  # for the pipeline to select; then it is asked again later
BATCH_SELECTION_LOOK_MS = 50  # how often it is looked whether it has
BATCH_SAMPLE_ITEMS = 20  # of a dry run: what a person looks at
BATCH_ENDED_KEPT = 1_000  # operations that ended just now: the tables may not have them yet
BATCH_TABLES_WAIT_MS = 2_000  # for the tables to know of an operation that ended
BATCH_RATE_SAMPLE_MS = 500  # how often progress is noted, to tell the rate
BATCH_RATE_SAMPLES = 20  # ... of the last ten seconds

# --- identity ---------------------------------------------------------------------------------
GROUP_MEMBERS_MAX = 10_000  # of a group or role: they are one row of 300 KB
MEMBERSHIPS_MAX = 100  # groups and roles of one member: all are looked at for each command
AUTHORIZATIONS_PER_OWNER_MAX = 1_000  # they are read for each command: 0.2 ms
ASKED_KEPT_MAX = 10_000  # answers about permissions kept at hand: 5 MB
PASSWORDS_KEPT_MAX = 1_000  # that were right just now: 0.1 MB
GUESSES_OF_USER_FREE = 5  # wrong passwords for a name, before ...
GUESSES_OF_ADDRESS_FREE = 20  # ... or from an address, where several people may sit, before ...
GUESS_PAUSE_MS = 1_000  # ... the next one has to wait; the pause doubles with each, up to ...
GUESS_PAUSE_MS_MAX = 300_000  # ... this: at most 300 guesses a day and name
GUESS_FORGOTTEN_MS = 900_000  # after the last wrong one
GUESSERS_KEPT_MAX = 10_000  # names and addresses: 2 MB
SUBJECT_CHARS_MAX = 1_024  # of who is named in a signed token: it is on the log with each command
TOKEN_MS_MAX = 10 * 365 * 86_400_000  # ten years

# --- http -------------------------------------------------------------------------------------
CONNECTIONS_MAX = 4_096  # 100 KB each with its buffers: 400 MB; a client of ours has 128 at most
CONNECTIONS_PER_ADDRESS_MAX = 1_024  # eight of our clients; four addresses fill a node
HEAD_BYTES_MAX = 64 * KIB  # request line and headers; a signed token with many groups has 16 KiB
HEADERS_MAX = 100  # clients send ten; a chain of proxies adds some
REQUEST_TARGET_BYTES_MAX = 8 * KIB  # the longest name, percent-encoded, has 2.4 KiB
HEAD_MS_MAX = 10_000  # to send a head, from its first byte or from the connection's begin
BODY_GRACE_MS = 30_000  # to send a body ...
BODY_BYTES_PER_SECOND_MIN = 64 * KIB  # ... and a second more for each of these
DRAIN_MS_MAX = 30_000  # without reading a byte of an answer
SLOW_CLIENTS_BYTES_MAX = 128 * MIB  # answers that are not read and requests sent ahead, in all
SENT_AHEAD_BYTES = 384 * KIB  # ... of which a connection: one read, and 80 requests of 1.5 KB

# --- content over http ------------------------------------------------------------------------
CONTENT_PIECE_BYTES_MAX = 4 * MIB  # of a blob, in one request: what a client and a node hold of it
CONTENT_BLOB_BYTES_MAX = 65_536 * MIB  # S3 takes 78 GiB in parts of BLOB_PART_BYTES
CONTENT_BLOBS_ASKED_MAX = 10_000  # that one request asks about: a MiB of names
CONTENT_STATUSES_MAX = 10_000  # in one report: 2 MiB
CONTENT_METADATA_CHARS_MAX = 65_536  # of the names and values that a package carries
CONTENT_UPLOADS_MAX = 256  # unfinished ones at once: a publisher has one
CONTENT_UPLOAD_KEPT_MS = 86_400_000  # after its last piece an unfinished upload can go on for a day
CONTENT_UPLOAD_ATTEMPTS_MAX = 3  # by a publisher, as members that have a part of it are lost
CONTENT_UPLOAD_BYTES_PER_SECOND_MIN = 4 * MIB  # at which a store takes an upload, at the least

# --- members ----------------------------------------------------------------------------------
MESSAGE_BYTES_MAX = APPEND_BYTES_MAX + 1 * MIB  # an append to a replica, and what it is told beside
FRAME_BYTES = 1 * MIB  # messages of one turn share frames of about this size; a larger one is alone
MEMBER_BYTES_MAX = 32 * MIB  # sent to one member and not answered or not taken: 30 ms at 1 GB/s
MEMBER_BUSY_RETRY_MS = 50  # beyond it, come back later: the above and a round of the other side
CALL_BYTES = 512  # what a call without an answer costs beside its bytes: 65,536 calls at the most
PROCESSES_MAX = 64  # of one node on one machine, each with an interpreter and a store: 80 MB
REBALANCE_READ_BYTES = 64 * KIB  # of each log that is copied, at a time: 16 MiB at 256 partitions
REBALANCE_SPARE_BYTES = 16 * MIB  # a member takes beside its contents: two segments, files of state
MEMBER_RESTART_MS_MIN = 100  # before a member that ended is started again; it doubles up to ...
MEMBER_RESTART_MS_MAX = 30_000  # ... this, for one that ends again and again
MEMBER_SETTLED_MS = 60_000  # one that has run for so long is started again at once
MEMBER_STOP_MS_MAX = 30_000  # that a member may take to stop in order: its last snapshot
COLLEAGUE_MS_MAX = 1_000  # that a member may take to say how it is, or what it counted
MEMBER_TICK_MS = 1_000  # how often a connection is looked at; one message a second where it is idle
MEMBER_SILENT_TICKS_MAX = 5  # without a byte, though one was asked for: it is broken after 6 s
HELLO_MS_MAX = 5_000  # to connect, to prove a key and to say hello
HELLO_BYTES_MAX = 4 * KIB  # names, versions, or the reason of a refusal: what a stranger may send
STRANGERS_MAX = 64  # connections that have not said hello; with their buffers 0.5 MB
RECONNECT_MS_MIN = 20  # a member that restarts is found soon ...
RECONNECT_MS_MAX = 2_000  # ... one that stays away is tried every two seconds
OWNER_WAIT_MS_MAX = (
    5_000  # that a command waits for a partition on the move: ten take-overs of 0.5 s
)
OWNER_RETRY_MS = 50  # and how often it is tried meanwhile, though nothing is known to have changed
OWNER_WAITING_COMMANDS_MAX = 20_000  # that wait so at once: 40 MB of commands of 2 KB
UNIX_PATH_BYTES_MAX = 107  # of a socket: what Linux has room for

# --- coordination -----------------------------------------------------------------------------
COORDINATION_ATTEMPTS_MAX = 64  # for a guard to hold: so many members may start at once
COORDINATION_RETRY_MS = 500  # before a member whose lease ran out asks for its place again
COORDINATION_CUTS_KEPT = 128  # in etcd: 8 s at 16 a second, 1.5 MiB if all of 4,096 logs move
COORDINATION_COMPACT_CUTS = 256  # of history between compactions: 16 s, 3 MiB of such cuts
COORDINATION_LEASE_MS = 6_000  # a dead member's place is given up; renewed three times as often
ETCD_CALL_MS_MAX = 2_000  # ten times the slowest write that was seen on a healthy server
ETCD_CONNECT_MS_MAX = 1_000  # to one server, before the next one is tried
ETCD_RECONNECT_MS_MAX = 1_000  # between attempts at a server that is away
ETCD_PING_MS = 10_000  # a connection that is silent is tried; etcd allows one in 5 s
ETCD_ANSWER_BYTES_MAX = 64 * MIB  # 4,095 chains of 100 ranges each are half of that
ETCD_WATCH_RETRY_MS = 100  # before a watch that broke is begun again; it doubles up to ...
ETCD_WATCH_RETRY_MS_MAX = 2_000

# --- taking over ------------------------------------------------------------------------------
TAKE_OVER_MS_MAX = 5_000  # for a quorum to promise and to hold the tail; then it is asked anew
TAKE_OVER_RETRY_MS_MIN = 10  # before a disk that did not answer is asked again: a round trip or ...
TAKE_OVER_RETRY_MS_MAX = 200  # ... two ticks at most, in which others notice the silence, too
TAKE_OVER_HEAL_MS = 500  # that a fenced owner leaves to its successor: as long as one may take
HAND_OVER_MS_MAX = 5_000  # for a quorum to hold all that an owner sent, before it gives up
# --- the cluster ------------------------------------------------------------------------------
CLUSTER_TICK_MS = 62  # of connections between members: a sixteenth of a second, as cuts are made
CLUSTER_SILENT_TICKS_MAX = 15  # without a byte, and a member is taken for gone: after a second
CLUSTER_LOOK_MS = 250  # how often placement is looked at, though nothing is known to have changed
CLUSTER_SETTLE_MS = 1_500  # after its start a member takes nobody for gone whom it never heard
CLUSTER_ACTOR_MS = 500  # without an owner and without news: then any replica takes a partition
CLUSTER_CALM_MS = 1_000  # members have been the same for so long: sixteen ticks, and disks change
CLUSTER_MOVES_MAX = 8  # planned moves of one member at once: each closes a partition for some 10 ms
CLUSTER_RETRY_MS_MIN = 20  # after a take-over that was refused: the others notice the loss as we do
CLUSTER_RETRY_MS_MAX = 2_000  # one that fails again and again is tried every two seconds
CLUSTER_BEHIND_MAX = 1_000  # records that a standby may lack and still be handed a partition: 10 ms
CLUSTER_FOLLOW_MS = 1_000  # before a standby that stopped follows its log again
CLUSTER_READ_MS = 5_000  # how often members and chains are read from etcd without a hint
CLUSTER_TEND_MS = 10_000  # how often owners look after closed ranges: copying them takes as long
CLUSTER_REMEMBER_MS = 1_000  # after which a chain that was read is in a file: 1 MB for 4,096
CLUSTER_MEET_MS_MAX = 2_000  # until somebody is asked for cuts: members meet within a second
CLUSTER_REPAIR_MS_MAX = 10_000  # for a member to say what it knows: 4,096 chains are 2 MB
CLUSTER_LEFT_MAX = 16  # partitions given up in one look: 16 notes and removals of rows, some 200 ms
CUTS_LISTED_MAX = 1_000  # in one answer: a minute of them, 150 KB
CLUSTER_START_MS_MAX = 5_000  # that a start waits until all partitions have an owner that is heard
CLUSTER_DRAIN_MS_MAX = 30_000  # that a member which stops gives itself to hand everything over

# --- members over a broker ----------------------------------------------------------------------
BROKERED_FEED_MS = 10_000  # before a standby without a state looks for a snapshot again
BROKERED_KEPT_MS = 10_000  # that a member which left the group is still reached: a broker restarts
BROKERED_DRAIN_MS = 1_000  # before a member that drains asks again for what it still has
BROKERED_MOVE_MS_MAX = 10_000  # that a move by hand is waited for: one takes some 200 ms

# --- the journal of a cluster -----------------------------------------------------------------
CLUSTER_MARKS_MS = 62  # how often owners tell how far their logs are acknowledged: once a tick
CLUSTER_SEND_BYTES = 4 * MIB  # of appends in one message: replicas sync it while the next is sent
CLUSTER_FETCH_BYTES = 4 * MIB  # of a log, fetched from another member in one go: 10 ms to store
CLUSTER_HELD_BYTES = 4 * MIB  # appends that are kept while what came before them is fetched
CLUSTER_RETRY_MS = 500  # before what no member could give is asked for again

# --- Kafka's journal --------------------------------------------------------------------------
KAFKA_NAME_CHARS_MAX = 48  # with a topic of 200 and a dot it fits the 249 that Kafka takes
KAFKA_DELIVERY_MS = 20_000  # of a flight, sent again meanwhile: a broker is back within ten seconds
KAFKA_OPEN_MS_MAX = 15_000  # until a broker has answered the first question
KAFKA_NOTICE_MS = 3_000  # then a start says what it waits for: a broker answers within milliseconds
KAFKA_ASK_MS_MAX = 10_000  # until a broker has answered any other
KAFKA_ASK_AGAIN_MS = 20  # a broker that is about to lead a partition says so in a moment
KAFKA_READ_MS_MAX = 30_000  # until a record that is there has come: longer than a restart takes
KAFKA_FETCH_WAIT_MS = 500  # how long a broker waits for news before it says that there are none
KAFKA_LOOK_WAIT_MS = 10  # the same where only what is there is read, here and there
KAFKA_QUEUE_BACKOFF_MS = 5  # a full queue of 20,000 records is emptied in 40 ms: then go on soon
KAFKA_POLL_MS = 200  # the threads that listen look so often whether they are to end: 5 times/s
KAFKA_FOLLOW_POLL_MS = 50  # and so often who is followed; what comes is handed on at once
KAFKA_PROBE_MS = 500  # how often a cluster that is away is asked for
KAFKA_RETRY_MS = 250  # before what could not be asked is asked again
KAFKA_REFRESH_MS = 1_000  # how often the ends of partitions that others write are asked for
KAFKA_FLIGHT_BYTES_MAX = 16 * MIB  # of appends sent together, as those that share a sync
KAFKA_FLIGHT_RECORDS_MAX = 65_536  # 300 B each: as many as fit
KAFKA_LINGER_MS = ((512, 2.0), (32, 0.5))  # of a flight of so many records: 1 µs each, and room
KAFKA_RESENDS_MAX = 16  # of a flight between others: each means that somebody else had written
KAFKA_LATE_MS_MIN = 100  # an append that takes so much longer than the first is told later
KAFKA_RECENT_BYTES = 1 * MIB  # of a followed partition, kept for all that follow it
KAFKA_CONSUMERS_IDLE_MAX = 8  # kept where they read last; each has 4 threads and 8 MiB at most
KAFKA_CONSUMER_IDLE_MS = 30_000  # then it is closed
KAFKA_THREADS_MAX = 16  # that wait for brokers: as many reads at the same time
KAFKA_BATCH_BYTES = 1_000_000  # of records on the wire: just below what a topic takes by default
KAFKA_RECORD_OVERHEAD_BYTES = 100  # of a batch with one record: 61, a mark of 21, lengths

# --- groups -----------------------------------------------------------------------------------
GROUP_TICK_MS = 62  # commits of this time share a message: a sixteenth of a second, as ticks are
GROUP_ANSWER_MS_MAX = 5_000  # that a member may take to answer a rebalance: 40 round trips of 125
GROUP_RESEND_MS = 1_000  # a message that was not read back after 16 ticks is taken for lost
GROUP_RETRY_MS_MIN = 1_000  # before a parked partition is tried again; it doubles up to ...
GROUP_RETRY_MS_MAX = 60_000  # ... this; one that ran for so long fails for the first time again
GROUP_MOVES_MAX = 4  # partitions that a member drains at once to even out the load
GROUP_PARTITIONS_MAX = 100_000  # 35 B each and a token of 8: all of them fit an entry of 4 MiB
GROUP_ERROR_CHARS_MAX = 1_000  # of a parked partition's error: all of them are in each epoch
GROUP_CHECKPOINT_BYTES = 256 * KIB  # of messages before the leader sums them up: 5,000 changes ...
GROUP_CHECKPOINT_RATIO = 4  # ... and so many times the sum itself: a quarter more bytes at the most
GROUP_SESSION_MS = (
    10_000  # a member that is not heard for so long is given up: a node's restart ...
)
GROUP_SESSION_MS_MIN = 500  # ... takes less; at the least eight ticks: two lost heartbeats and one
GROUP_SESSION_MS_MAX = 300_000
GROUP_JOIN_MS = 62  # joins and leaves of this time share a generation: ten programs start as one
GROUP_LOOK_MS = 2_000  # how often members in etcd are looked at without a hint, which may be lost
GROUP_PAUSE_MS = 100  # before a log or membership that failed is asked again; it doubles up to ...
GROUP_PAUSE_MS_MAX = 2_000
GROUP_STALE_MS_MAX = 5_000  # without the log, work stops: after so long the others give it away
GROUP_STOP_MS = 30_000  # that work may take to let go of a partition before it is cancelled
GROUP_SENDS_MAX = 4  # messages that wait for a slow log; what is new meanwhile shares the next one
GROUP_RECENT_BYTES = 1 * MIB  # of a log's end, in memory at its home: readers are seconds behind
GROUPS_MAX = 256  # of a node; each has a topic with files of 4 MiB and more
GROUP_PROGRAMS_MAX = 1_000  # members of one group: 60 KB of names in each generation
GROUP_NAME_CHARS_MAX = 100  # a part of a topic's name, which may have 200
GROUP_MEMBER_CHARS_MAX = 100
GROUP_TOKEN_CHARS_MAX = 200
GROUP_CARD_BYTES_MAX = 4 * KIB  # what a member says of itself: addresses and a key
GROUP_MESSAGE_BYTES_MAX = 4_000_000  # just below an entry of a journal

# --- tasks ------------------------------------------------------------------------------------
PAYLOAD_BYTES_MAX = 3 * MIB  # leaves room for the rest of a record of ENTRY_BYTES_MAX
REQUEST_BYTES_MAX = 12 * MIB  # payloads, results, errors: two with their events fit an append
TASKS_PER_SUBMIT_MAX = 10_000  # one atomic append; about 100 ms of work
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
WAIT_MS_MAX = 300_000  # a long poll; longer waits are made of several
PAGE_ITEMS_MAX = 10_000
SPAN_MS_MAX = 10 * 365 * 86_400_000  # delays, windows and times to keep: ten years

# --- content distribution ---------------------------------------------------------------------
CONTENT_PUBLISHERS_MAX = 100  # of a node; each has an offset map of CONTENT_QUEUE_BYTES_MAX at most
CONTENT_SUBSCRIBERS_MAX = 1_000  # that a node knows: what they said last is 1 MB
CONTENT_MESSAGE_BYTES_MAX = 3 * MIB  # of a package on the log: with the rest it fits a record
CONTENT_REASON_CHARS_MAX = 500  # why an import fails; it is said with each announcement
CONTENT_PACKAGES_KNOWN_MAX = 10_000  # of a publisher, by their ids: 2 MB
CONTENT_REOPEN_BYTES = 64 * MIB  # of the packages that are read at a start for their ids: 0.2 s
CONTENT_QUEUE_ENTRIES_MAX = 100_000  # of a publisher, in the queues' shared map: 10 MB
CONTENT_QUEUE_BYTES_MAX = 16 * MIB  # ... or so much, where packages have many paths
CONTENT_QUEUE_BLOCK_ENTRIES = 128  # of the map, packed together: 50 us to unpack all of them
CONTENT_RECENT_BYTES = 32 * MIB  # of topics, kept for readers that follow one another
CONTENT_OLD_BYTES = 256 * KIB  # of old ones, read at once at least: 128 places have room there
CONTENT_BATCH_MESSAGES_MAX = 1_000  # in one append, of all senders together
CONTENT_BATCH_BYTES_MAX = 8 * MIB  # ... or so much: 8 ms of writing at 1 GB/s
CONTENT_WAKE_MS = 5  # readers are woken so often at most: a hundred of them take 1 ms
CONTENT_GATHER_MS = 250  # what subscribers say in this time is written together: 4 appends a second
CONTENT_REMEMBER_MS = 300_000  # how often all that is known is written anew, so that older ...
CONTENT_REMEMBER_ENTRIES = 20_000  # ... discoveries are not needed; or after so many: 4 MB to read
CONTENT_LOOK_MS = 60_000  # how often a service without work looks whether something has aged out
CONTENT_SILENT_INTERVALS = 3  # without a discovery, and a subscriber counts as dead
CONTENT_SUBSCRIBER_KEPT_MS = 30 * 86_400_000  # a dead one holds log and events for so long
CONTENT_BLOCKED_ATTEMPTS = 3  # at the head of a queue, and it is blocked
CONTENT_BACKLOG_FREE = 1_000  # packages that a subscriber may be behind at no cost; from there on
CONTENT_BACKLOG_FULL = 2_000  # ... publishing slows down, and here it takes
CONTENT_DELAY_MS_MAX = 20_000  # ... this long
CONTENT_STALLED_MS = 30_000  # one that has not moved for so long slows nobody down
CONTENT_PRESSURE_LOOK_MS = 100  # how old the figure may be that publishing is slowed by
CONTENT_ERRORS_MAX = 10_000  # in the error queue of a subscriber; older ones are forgotten
CONTENT_STATUSES_KNOWN_MAX = 256  # of a subscriber, to recognize one that is sent again
CONTENT_SNAPSHOTS_KNOWN_MAX = 100  # the last ones, for new subscribers to begin with
CONTENT_EVENTS_LOOK_MAX = 16  # reads of the log for a page of events: a publisher may have few
CONTENT_SUBSCRIBERS_MEASURED_MAX = 500  # in metrics; four series each

# --- content: subscribers ----------------------------------------------------------------------
CONTENT_PREFETCH_PACKAGES_MAX = 8  # that one commit takes in, however large: an eighth of the syncs
CONTENT_SMALL_PACKAGES_MAX = 64  # ... if they are small: a commit costs as much as ten of them
CONTENT_SMALL_PACKAGES_BYTES = 512 * KIB  # ... all together: 2 ms
CONTENT_PREFETCH_BYTES = 1 * MIB  # read ahead: one of the largest in the log, or many small ones
CONTENT_GATHERED_PACKAGES_MAX = 1_000  # of one commit, where commits have to wait for one another
CONTENT_GATHERED_BYTES = 8 * MIB  # ... and read ahead for it
CONTENT_ANNOUNCE_MS = 10_000  # a subscriber says at least so often how far it is
CONTENT_ANNOUNCE_MS_MIN = 200  # ... and at most: 100 subscribers cost 500 small entries/s
CONTENT_RETRY_MS_MIN = 5_000  # before a package that failed is tried again; it doubles up to ...
CONTENT_RETRY_MS_MAX = 900_000  # ... 15 minutes
CONTENT_POLL_MS = 30_000  # a read that waits at the end of a topic: two a minute when idle
CONTENT_WAIT_MS = 1_000  # before a precondition that says WAIT is asked again
CONTENT_SKIPPED_MAX = 10  # packages passed over before the offset is saved: at most so many again
CONTENT_READY_IDLE_MS = 10_000  # at the end of the log for so long: ready
CONTENT_READY_FORCED_MS = 300_000  # ... or running for so long
CONTENT_STATUSES_WAITING_MAX = 1_000  # not reported yet; 100 bytes each, written with each commit
CONTENT_COMMANDS_KEPT_MAX = 1_000  # ids of commands that were done: 40 KB of a note
CONTENT_FAILED_KEPT_MAX = 1_000  # packages given up on that can be tried again
CONTENT_TOUCHED_MAX = 1_000  # of its paths that newer ones changed; beyond it, all of them
CONTENT_SHARED_BYTES_MAX = 32 * MIB  # of parsed packages that subscribers of one process share
CONTENT_SEED_FRAME_BYTES_MAX = 64 * MIB  # of a snapshot: a node, or a thousand failed packages

# --- the order of a cluster ----------------------------------------------------------------------
TICKS_PER_SECOND = 16  # a guarded write in etcd takes 2 ms, 8 at the worst: an eighth of a tick
RING_DELAY_TICKS = 3  # 188 ms between two members of the ring: etcd's worst writes take 170
CUT_SHARES = 64  # each cut says where one in 64 logs stands: 64 of 4,096, 320 bytes; etcd keeps 128
CUT_LOGS_MAX = 65_536  # sixteen topics of 4,096 partitions
CUT_BYTES_MAX = 1 * MIB  # not compressed: 65,536 logs of 6 bytes. etcd takes 1.5 MiB
CUT_NAME_BYTES_MAX = 200  # of a writer, a nonce or a topic
PUBLISHER_LOOK_SECONDS = 1.0  # how often a member that has no turn reads: hints may be lost
PUBLISHER_RETRY_SECONDS_MAX = 2.0  # pauses double from a tick on while etcd is away
TICK_LATENESS_BUCKETS = (0.004, 0.008, 0.016, 0.032, 0.0625, 0.125, 0.25, 0.5, 1.0, 4.0)  # seconds
CUTS_READ_MAX = 256  # in one read of the cuts that are kept: 3 MB of the largest, 15 KB of small
CUTS_KEPT_BYTES = 256 * MIB  # by each member: 3 days if nothing happens, 20 minutes of 4,096 logs
CUTS_WAITING_MAX = 1_024  # that could not be written yet: 64 s of a full disk, 12 MB of the largest
CUTS_KEEP_SECONDS = 1.0  # between writes of cuts that are kept: etcd has those of the last 8 s
ORDER_SPANS_MAX = 1_000  # of the order in one answer, and the rest of the last cut: 100 KB of JSON
CUT_SMALL_BYTES = 128  # below this nothing is gained by compressing

# --- pipeline ---------------------------------------------------------------------------------
FILTER_CONDITIONS_MAX = 256  # more than people write; DuckDB takes about 40 ms for them
FILTER_DEPTH_MAX = 4  # an $or in an $or: two is all that fields that are ANDed ever need
FILTER_VALUES_MAX = 10_000  # in all lists of a filter: one page of keys
FILTER_TEXT_CHARS_MAX = 8_192  # the longest text of a column that people search for: an error
FILTER_PATTERN_CHARS_MAX = 1_000  # a match takes time in proportion to it, for every row
SORT_COLUMNS_MAX = 10  # more say nothing: the key decides long before
CURSOR_CHARS_MAX = 16_384  # ten texts of 256 characters and the key, in base64
PAGE_OFFSET_MAX = 1_000_000  # rows that are sorted only to be left out; cursors have no such limit
TOTAL_ITEMS_MAX = 100_000  # counted for a page: 10 ms; beyond it "or more" is said
SELECTION_LOOK_MS = 50  # how often requests are looked for: a directory of a few files, 20 us
SELECTION_TABLES_WAIT_MS = 20_000  # for the tables to be as far as a request wants
SELECTION_ATTEMPTS_MAX = 3  # for one that throws; then its asker is told

# --- console ----------------------------------------------------------------------------------
CONSOLE_FORM_BYTES_MAX = 8 * MIB  # variables may have 4 MiB, and a form writes a byte as three
CONSOLE_FORM_FIELDS_MAX = 5_000  # a mapping of elements has one for each; definitions have hundreds
CONSOLE_TICK_MS = 1_000  # how often live numbers are read while somebody looks: 5 ms of work each
CONSOLE_PING_MS = 15_000  # a stream that says nothing for longer is closed by proxies
CONSOLE_LIST_ITEMS = 50  # a page of a list: what a screen and a half shows
CONSOLE_LIST_MS_MAX = 300  # for a list of the state whose filter fits few rows: 100,000 looked at
CONSOLE_LOG_BYTES_MAX = 4 * MIB  # of the log, read for a time line at once: 30,000 records
CONSOLE_DEFINITIONS_KEPT_MAX = 200  # read and ready to be drawn: 100 KB each
SESSIONS_PER_OWNER_MAX = 20  # of the console: browsers of one person; the oldest is signed out
SESSIONS_CLEARED_MAX = 20  # that are over, with each new one: there are never many more
OIDC_FETCH_SECONDS_MAX = 10  # for an answer of the identity provider
OIDC_ANSWER_BYTES_MAX = MIB  # tokens with hundreds of groups have some 20 KB
OIDC_FLOW_SECONDS = 600  # from leaving for the identity provider to coming back
OIDC_KNOWN_SECONDS = 300  # for how long what the provider says of itself is kept
CONSOLE_HISTORY_SAMPLES = 180  # of the small charts: three minutes

# --- metrics ----------------------------------------------------------------------------------
METRIC_TYPES_MAX = 64  # types of jobs shown by name, others as "other": 50 samples each, 4 us each
METRIC_WORKERS_MAX = 10_000  # workers whose last request is remembered: 2 MB
METRIC_WORKER_MS = 60_000  # a worker that has not asked for jobs for so long is not counted
WAITING_JOBS_LOOKED_AT = 4  # of each priority, for the age of the one that waits longest
WAITING_PRIORITIES_LOOKED_AT = 4  # of a type; each is a look into the store, 15 us
