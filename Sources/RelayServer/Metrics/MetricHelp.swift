/// The help texts of the metrics: their rows in `docs/operations.md`, in a few words.
enum MetricHelp {
    /// The text of each metric, by the metric's name.
    static let texts: [String: String] = {
        let rows = table.split(separator: "\n").map { row in
            row.split(separator: " ", maxSplits: 1).map(String.init)
        }
        return Dictionary(rows.map { ($0[0], $0[1]) }, uniquingKeysWith: { first, _ in first })
    }()

    /// One line for each metric: its name, a space, and the text.
    ///
    /// A text has no backslash and does not begin with a number, so that it cannot be taken for a
    /// sample.
    private static let table = """
        belfry_attempts_total attempts to send a push that ended, by outcome
        belfry_backup_age_seconds age of the last commit up to which the backup has everything
        belfry_backup_bytes_total bytes of the log that the relay shipped
        belfry_backup_chains_ended_total copies of the file that had to begin before their time
        belfry_backup_copy_age_seconds age of the newest whole copy
        belfry_backup_failures_total failed attempts to ship the log
        belfry_backup_interval_seconds how often the relay ships the log
        belfry_backup_segments_total segments of the log that the relay shipped
        belfry_backup_waiting_bytes bytes that wait beside the store to be shipped
        belfry_bound_reached whether the relay refuses changes because of this bound
        belfry_build_info which build this is, in labels
        belfry_change_to_acceptance_seconds time from the append of a change to the gateway's yes
        belfry_change_to_device_seconds time from a change's append to the moment its client names
        belfry_changes_followed_total changes that the follower has worked
        belfry_changes_quarantined_total changes that were set aside since the start
        belfry_client_receipts_total notifications that, by their client's word, came or were opened
        belfry_connections connections that the relay serves
        belfry_connections_failed_total connections that the system could not hand over
        belfry_connections_refused_total connections beyond the limits
        belfry_connections_too_slow_total connections that ended because their client was too slow
        belfry_conservation_difference by how much the accounts do not balance; must be 0
        belfry_courier_dropped_total notifications of web couriers that a full queue lost
        belfry_deliveries_held deliveries that are held back for their recipients' sake
        belfry_deliveries_held_total how often a delivery was held back
        belfry_deliveries_in_flight deliveries that are admitted and not yet passed
        belfry_deliveries_owed_total deliveries that were handed over
        belfry_deliveries_settled_total what settling a delivery came to, by outcome
        belfry_follow_behind_bytes how much of a followed server's log the relay has not taken yet
        belfry_follow_retained_bytes how much a followed server keeps for the relay
        belfry_follow_rows_total rows of a followed database that the relay has taken
        belfry_follow_state the state of a followed database
        belfry_follow_state_seconds how long a followed database has been in its state
        belfry_follower_stalled_seconds how long the follower has stood still at one entry
        belfry_forwarded_calls calls handed to the owner, or kept until there is one
        belfry_forwarded_calls_total what became of calls for the owner, by outcome
        belfry_gateway_alarms_total answers of the gateway that somebody should look at
        belfry_gateway_answers_total answers of the gateway
        belfry_gateway_connections connections to the gateway
        belfry_gateway_requests_open requests that the gateway has not answered yet
        belfry_gateway_requests_waiting requests that wait for room at the gateway
        belfry_halts containers, topics and gateways whose deliveries wait
        belfry_http_request_seconds how long requests took
        belfry_http_requests_total requests, by the template of their path
        belfry_index_bytes memory that an index takes
        belfry_index_candidates_total entries of an index that were verified
        belfry_index_changes_total changes that were matched
        belfry_index_confirmed_total verified entries of an index that fired
        belfry_index_keys keys of an index
        belfry_index_matches_total subscriptions that an index found
        belfry_index_postings entries of an index, by what has to be verified
        belfry_index_programs programs of an index
        belfry_index_residuals subscriptions that are looked at for each change of their type
        belfry_index_shared_postings entries of an index that several subscriptions share
        belfry_index_subscriptions subscriptions of an index
        belfry_intake_refused_total requests with changes that the relay refused, by the bound
        belfry_live_behind_entries durable entries of the log that live clients were not told of yet
        belfry_live_change_seconds how long the engine worked at one change that somebody looks at
        belfry_live_clients clients that are connected and have said who they are
        belfry_live_ends_total connections and streams that the relay ended, by the code
        belfry_live_gone_total results that the relay ended, by the reason
        belfry_live_group_frames_total frames that were made once for all members of a group
        belfry_live_groups different live queries
        belfry_live_lagging_clients clients that fell behind and have not caught up
        belfry_live_members records in the results that are kept in memory
        belfry_live_readings_total readings of all records of a type, for results
        belfry_live_refused_total live clients that were not let in, by the reason
        belfry_live_resets_total live queries that had to begin anew, by the reason
        belfry_live_result_bytes about how many bytes the results in memory take
        belfry_live_resume_entries_total changes that the relay read for clients that came back
        belfry_live_resumes_total readings of the log for clients that came back
        belfry_log_lag_entries entries of the log that are not settled
        belfry_matches_total subscriptions that changes fired
        belfry_predicate_errors_total evaluation errors of conditions
        belfry_process_resident_bytes memory that the process uses
        belfry_progress_position position of the progress in the log
        belfry_pruned_total rows that retention deleted
        belfry_quarantined_changes changes that are set aside now
        belfry_queries_cut_total queries whose page ended at its bound of records or of time
        belfry_queries_refused_total queries of records for which there was no place
        belfry_queries_running queries of records that are open
        belfry_quota_reached_total refusals, and ends of devices, because a quota was reached
        belfry_range_subscriptions_waiting subscriptions in ranges that are not settled
        belfry_ranges_unreadable_total ranges that could not be worked; should be 0
        belfry_records_unkept_total changes whose record was not kept because of a quota
        belfry_requests_limited_total requests beyond the rates
        belfry_retries_waiting deliveries that wait to be tried again
        belfry_shard_age_seconds how long ago this relay saw the shard last
        belfry_shard_containers containers in the shard
        belfry_shard_owned whether a relay owns the shard
        belfry_snapshot_bytes size of the last snapshot that was kept
        belfry_snapshot_pause_seconds how long the follower stood still for a snapshot
        belfry_snapshot_position position of the last snapshot that was kept
        belfry_snapshots_failed_total snapshots that could not be written
        belfry_snapshots_ignored_total snapshots that the start did not trust
        belfry_snapshots_kept_total snapshots that were written
        belfry_standby_position position of the state of a relay that stands by
        belfry_standby_reloads_total how often a relay that stands by had to load its state anew
        belfry_standby_subscriptions subscriptions in the state of a relay that stands by
        belfry_storage_file_bytes size of the store's file, or of its tables and indexes
        belfry_storage_free_bytes free room on the store's disk
        belfry_storage_wal_bytes size of the store's write-ahead log
        belfry_store_disagreements relays of the store whose settings differ from the owner's
        belfry_store_handovers_total hand-overs of the store to the machine that should own it
        belfry_store_nodes number of relays of the store
        belfry_store_owner whether this relay owns the store
        belfry_subscriptions_active subscriptions in the indexes
        belfry_subscriptions_disabled_total subscriptions that ended for what their conditions took
        belfry_subscriptions_refiled_total subscriptions that were put under another key
        belfry_subscriptions_unreadable_total saved conditions that cannot be read; should be 0
        belfry_unreadable_rows_total rows that were set aside since the start; should be 0
        belfry_untaken_answer_bytes bytes of long answers that clients have not taken
        belfry_webhook_changes_ignored_total changes in webhooks that mean nothing to the relay
        belfry_webhooks_total webhooks of a source, by outcome
        """
}
