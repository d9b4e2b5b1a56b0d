"""What each alert is for, as series of an hour that end in it, and an hour in which all is well.

Series are in promtool's notation: `0+1x60` counts from 0 by 1, `5x60` stays at 5.
"""

HEALTHY = {
    'up{job="holdfast",instance="a"}': "1x60",
    'holdfast_partition_open{instance="a",partition="1"}': "1x60",
    'holdfast_partition_open{instance="b",partition="1"}': "0x60",  # it was there before
    'holdfast_lag_records{instance="a",partition="1"}': "100x60",
    'holdfast_refused_commands_total{instance="a"}': "5x60",
    'holdfast_failed_commands_total{instance="a",partition="1"}': "2x60",
    'holdfast_command_seconds_bucket{instance="a",le="0.004096"}': "0+100x60",
    'holdfast_command_seconds_bucket{instance="a",le="+Inf"}': "0+100x60",
    'holdfast_journal_sync_seconds_bucket{instance="a",le="0.01"}': "0+100x60",
    'holdfast_journal_sync_seconds_bucket{instance="a",le="+Inf"}': "0+100x60",
    'holdfast_jobs_waiting{instance="a",partition="1",type="mail"}': "50x60",
    'holdfast_jobs_waiting{instance="a",partition="1",type="long"}': "50x60",
    'holdfast_jobs_running{instance="a",partition="1",type="mail"}': "0x60",
    'holdfast_jobs_running{instance="a",partition="1",type="long"}': "3x60",
    'holdfast_workers{instance="b",type="mail"}': "2x60",  # others are asked than have the jobs
    'holdfast_jobs_oldest_waiting_seconds{instance="a",partition="1",type="mail"}': "20x60",
    'holdfast_incidents_open{instance="a",partition="1",reason="NO_RETRIES_LEFT",type="m"}': "0x60",
    'holdfast_job_attempts_total{instance="a",type="mail",outcome="completed"}': "0+100x60",
    'holdfast_job_attempts_total{instance="a",type="mail",outcome="failed"}': "0+5x60",
    'holdfast_job_attempts_total{instance="a",type="mail",outcome="expired"}': "3x60",
    'holdfast_transactions_oldest_seconds{instance="a"}': "1x60",
    'holdfast_distributions_pending{instance="a",target="2"}': "1 0x59",
    'holdfast_http_refused_total{instance="a",reason="silent"}': "0+2x60",
    'holdfast_clock_jumps_total{instance="a"}': "1x60",
    'holdfast_pipeline_lag_seconds{instance="a"}': "5x60",
    'holdfast_disk_free_bytes{instance="a"}': "50x60",
    'holdfast_disk_size_bytes{instance="a"}': "100x60",
    'holdfast_snapshots_failed_total{instance="a"}': "1x60",
    'holdfast_snapshots_not_stored_total{instance="a"}': "1x60",
    'holdfast_damaged_files{instance="a"}': "0x60",
    'holdfast_damage_found_total{instance="a",what="log"}': "1x60",
    'holdfast_cluster_members{instance="a"}': "3x60",
    'holdfast_cluster_members_heard{instance="a"}': "3x60",
    'holdfast_cluster_partitions_without_owner{instance="a"}': "0x60",
    'holdfast_cluster_under_replicated_ranges{instance="a"}': "0x60",
    'holdfast_cluster_replica_lag_entries{instance="a",member="b"}': "10x60",
    'holdfast_cluster_standby_lag_records{instance="a"}': "10x60",
    'holdfast_etcd_available{instance="a"}': "1x60",
    'holdfast_etcd_rolled_back{instance="a"}': "0x60",
    'holdfast_cuts_late_total{instance="a"}': "0+1x60",
    'holdfast_cuts_missed_total{instance="a"}': "1x60",
    'holdfast_content_blocked{instance="a",publisher="p",subscriber="s"}': "0x60",
    'holdfast_content_lag_packages{instance="a",publisher="p",subscriber="s"}': "3x60",
    'holdfast_content_failed_packages{instance="a",publisher="p",subscriber="s"}': "0x60",
    'holdfast_group_alarms_total{instance="a",group="g"}': "0x60",
    'holdfast_group_parked{instance="a",group="g"}': "0x60",
    'holdfast_group_members{instance="a",group="g"}': "2x60",
}

# What is other than in a healthy hour when the alert fires.
TROUBLE = {
    "HoldfastIncidentsOpen": {
        'holdfast_incidents_open{instance="a",partition="1",reason="NO_RETRIES_LEFT",type="m"}': (
            "0x40 1x20"
        )
    },
    "HoldfastJobsFailing": {
        'holdfast_job_attempts_total{instance="a",type="mail",outcome="failed"}': "0+50x60"
    },
    "HoldfastLeasesExpire": {
        'holdfast_job_attempts_total{instance="a",type="mail",outcome="expired"}': "3x50 4x10"
    },
    "HoldfastJobsWaitTooLong": {
        'holdfast_jobs_oldest_waiting_seconds{instance="a",partition="1",type="mail"}': "0+60x60"
    },
    "HoldfastNoWorkers": {'holdfast_workers{instance="b",type="mail"}': "2x40 0x20"},
    "HoldfastTransactionsStuck": {
        'holdfast_transactions_oldest_seconds{instance="a"}': "0x50 60+60x10"
    },
    "HoldfastDistributionsStuck": {
        'holdfast_distributions_pending{instance="a",target="2"}': "2x60"
    },
    "HoldfastDown": {'up{job="holdfast",instance="a"}': "1x50 0x10"},
    "HoldfastPartitionClosed": {'holdfast_partition_open{instance="a",partition="1"}': "1x50 0x10"},
    "HoldfastLag": {'holdfast_lag_records{instance="a",partition="1"}': "0+1000x60"},
    "HoldfastOverloaded": {'holdfast_refused_commands_total{instance="a"}': "0+100x60"},
    "HoldfastCommandsSlow": {
        'holdfast_command_seconds_bucket{instance="a",le="0.004096"}': "0+50x60",
        'holdfast_command_seconds_bucket{instance="a",le="4.194304"}': "0+100x60",
    },
    "HoldfastBug": {'holdfast_failed_commands_total{instance="a",partition="1"}': "2x50 3x10"},
    "HoldfastRequestsRefused": {
        'holdfast_http_refused_total{instance="a",reason="silent"}': "0+120x60"
    },
    "HoldfastClockJumped": {'holdfast_clock_jumps_total{instance="a"}': "1x50 2x10"},
    "HoldfastTablesBehind": {'holdfast_pipeline_lag_seconds{instance="a"}': "0+60x60"},
    "HoldfastDiskAlmostFull": {'holdfast_disk_free_bytes{instance="a"}': "9x60"},
    "HoldfastDiskFull": {'holdfast_disk_free_bytes{instance="a"}': "2x60"},
    "HoldfastSyncSlow": {
        'holdfast_journal_sync_seconds_bucket{instance="a",le="0.01"}': "0+50x60",
        'holdfast_journal_sync_seconds_bucket{instance="a",le="0.5"}': "0+100x60",
    },
    "HoldfastSnapshotsFail": {'holdfast_snapshots_failed_total{instance="a"}': "1x50 2x10"},
    "HoldfastSnapshotsNotStored": {
        'holdfast_snapshots_not_stored_total{instance="a"}': "1x50 2x10"
    },
    "HoldfastDamage": {'holdfast_damaged_files{instance="a"}': "0x50 1x10"},
    "HoldfastMemberMissing": {'holdfast_cluster_members_heard{instance="a"}': "3x50 2x10"},
    "HoldfastPartitionWithoutOwner": {
        'holdfast_cluster_partitions_without_owner{instance="a"}': "0x50 1x10"
    },
    "HoldfastUnderReplicated": {
        'holdfast_cluster_under_replicated_ranges{instance="a"}': "0x40 1x20"
    },
    "HoldfastReplicaLag": {
        'holdfast_cluster_replica_lag_entries{instance="a",member="b"}': "0+1000x60"
    },
    "HoldfastStandbyLag": {'holdfast_cluster_standby_lag_records{instance="a"}': "0+10000x60"},
    "HoldfastEtcdAway": {'holdfast_etcd_available{instance="a"}': "1x50 0x10"},
    "HoldfastEtcdRolledBack": {'holdfast_etcd_rolled_back{instance="a"}': "0x50 1x10"},
    "HoldfastCutsLate": {'holdfast_cuts_late_total{instance="a"}': "0+120x60"},
    "HoldfastCutsMissed": {'holdfast_cuts_missed_total{instance="a"}': "1x50 2x10"},
    "HoldfastContentBlocked": {
        'holdfast_content_blocked{instance="a",publisher="p",subscriber="s"}': "0x40 1x20"
    },
    "HoldfastContentBehind": {
        'holdfast_content_lag_packages{instance="a",publisher="p",subscriber="s"}': "0+10x60"
    },
    "HoldfastContentFailed": {
        'holdfast_content_failed_packages{instance="a",publisher="p",subscriber="s"}': "0x50 1x10"
    },
    "HoldfastGroupAlarm": {'holdfast_group_alarms_total{instance="a",group="g"}': "0x50 1x10"},
    "HoldfastGroupParked": {'holdfast_group_parked{instance="a",group="g"}': "0x40 2x20"},
    "HoldfastGroupWithoutMembers": {'holdfast_group_members{instance="a",group="g"}': "2x40 0x20"},
}

# An alert that is a part of another one fires with it.
TOGETHER = {"HoldfastDiskFull": {"HoldfastDiskAlmostFull"}}
