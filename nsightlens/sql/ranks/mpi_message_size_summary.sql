-- Sizes of MPI messages by function, per run: the numbers of `nsys stats mpi_msg_size_sum`. A collective sends and receives:
-- two rows.
-- @scope run
-- @needs mpi
-- @alias mpi_msg_size_sum
-- @assumes nsys traced MPI (--trace=mpi). No public capture has these tables: synthetic files test this view.
-- @assumes Ranks send and receive the same data: do not add the rows of the two.
-- @column run           Run (one workload in one configuration).
-- @column tool          nsys: no other tool records MPI.
-- @column total_bytes   Sum of the sizes.
-- @column instances     Number of messages: p2p events, and collectives that send (receive) anything.
-- @column avg_bytes     Mean size, to one decimal.
-- @column median_bytes  Median size: the mean of the middle two for an even number.
-- @column min_bytes     Smallest size.
-- @column max_bytes     Largest size.
-- @column stddev_bytes  Sample standard deviation (n - 1), to one decimal; 0 for a single one.
-- @column source        p2p, coll_send or coll_recv.
-- @column name          Function; NULL where the report does not say.
-- @names function name
CREATE VIEW mpi_message_size_summary AS
WITH messages AS (
    SELECT run, tool, name, 'p2p' AS source, bytes FROM mpi_calls WHERE kind = 'p2p'
    UNION ALL
    SELECT run, tool, name, 'coll_send', bytes FROM mpi_calls WHERE kind = 'collective' AND bytes IS NOT NULL
    UNION ALL
    SELECT run, tool, name, 'coll_recv', receive_bytes FROM mpi_calls WHERE kind = 'collective' AND receive_bytes IS NOT NULL
)
SELECT run, tool,
    TRY_CAST(sum(bytes) AS BIGINT) AS total_bytes,
    count(*) AS instances,
    round(avg(bytes), 1) AS avg_bytes,
    quantile_cont(bytes, 0.5) AS median_bytes,
    min(bytes) AS min_bytes,
    max(bytes) AS max_bytes,
    CASE count(bytes) WHEN 1 THEN 0.0 ELSE round(stddev_samp(bytes), 1) END AS stddev_bytes,
    source, name
FROM messages
GROUP BY run, tool, source, name
ORDER BY run, tool, total_bytes DESC NULLS LAST, source, name;
