-- Every call of an operator with its own host time and the GPU time that it and the operators inside it launched. Sums of
-- durations, as in the TensorBoard plugin: kernels that run at once count each.
-- @scope rows
-- @requires ranges, api_calls, memory_ops, _occupied_kernels
-- @column run              Run.
-- @column tool             nsys or kineto.
-- @column profile_id       Profile.
-- @column process_id       OS process.
-- @column range_id         The call; key of `ranges`.
-- @column name             Operator.
-- @column shapes           Input shapes as the tool prints them.
-- @column host_total_ns    Its duration.
-- @column host_self_ns     That, less the operators directly inside it and the API calls that it made itself.
-- @column device_self_ns   Kernels and memory operations that it launched itself.
-- @column device_total_ns  Those, and those of the operators inside it.
-- @column tensor_self_ns   Kernels on tensor cores that it launched itself.
-- @column tensor_total_ns  Those, and those of the operators inside it.
-- @column unknown_self_ns  Kernels that it launched itself for which it is not known whether they use tensor cores.
-- @column unknown_total_ns Those, and those of the operators inside it.
-- @column eligible         It, or an operator inside it, can run on tensor cores: by name, or because it did.
-- @column kernel_self_ns   Kernels that it launched itself.
-- @column eligible_ns      Those of an operator that can run on tensor cores itself, with none inside it that can; else 0.
CREATE VIEW _operators AS
WITH RECURSIVE calls AS (
    SELECT op_range_id, duration_ns, start_ns >= coalesce(max(start_ns + duration_ns) OVER (
        PARTITION BY profile_id, process_id, thread ORDER BY start_ns, duration_ns DESC, launch_id
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), start_ns) AS outermost
    FROM api_calls WHERE duration_ns >= 0
), host AS (
    SELECT range_id, TRY_CAST(sum(duration_ns) AS BIGINT) AS inner_ns FROM (
        SELECT op_range_id AS range_id, duration_ns FROM calls WHERE outermost
        UNION ALL SELECT op_parent_id, duration_ns FROM ranges WHERE kind = 'operator' AND duration_ns >= 0
    ) WHERE range_id IS NOT NULL GROUP BY range_id
), device AS (
    SELECT range_id, TRY_CAST(sum(duration_ns) AS BIGINT) AS self_ns, TRY_CAST(coalesce(sum(duration_ns) FILTER (tensor_used), 0) AS BIGINT) AS tensor_ns,
        TRY_CAST(coalesce(sum(duration_ns) FILTER (kernel), 0) AS BIGINT) AS kernel_ns,
        TRY_CAST(coalesce(sum(duration_ns) FILTER (kernel AND tensor_used IS NULL), 0) AS BIGINT) AS unknown_ns
    FROM (
        SELECT op_range_id AS range_id, duration_ns, tensor_used, true AS kernel FROM _occupied_kernels WHERE tool <> 'ncu'
        UNION ALL SELECT op_range_id, duration_ns, NULL, false FROM memory_ops WHERE tool <> 'ncu'
    ) WHERE range_id IS NOT NULL AND duration_ns >= 0 GROUP BY range_id
), operators AS MATERIALIZED (
    SELECT r.*, coalesce(d.self_ns, 0) AS self_ns, coalesce(d.tensor_ns, 0) AS tensor_ns, coalesce(d.unknown_ns, 0) AS unknown_ns,
        coalesce(d.kernel_ns, 0) AS kernel_ns,
        coalesce(d.tensor_ns, 0) > 0 OR regexp_full_match(r.name, '(aten::(_convolution|conv[123]d|conv_tbc|conv_transpose[123]d'
            || '|convolution(_backward)?|cudnn_convolution(_transpose)?(_backward(_weight|_input)?)?|prelu|addmm_?|addmv|addr'
            || '|matmul|mm|mv|linear|addbmm|baddbmm|bmm|chain_matmul|linalg_multi_dot|_thnn_fused_(lstm|gru)_cell|(lstm|gru)_cell'
            || '|rnn_(tanh|relu)_cell|_scaled_mm|_grouped_mm|_?scaled_dot_product_.*attention.*|_flash_attention.*'
            || '|_efficient_attention.*)|(Cudnn)?Convolution(Transpose)?Backward[0-9]*|(Mm|Bmm|Addmm|Addbmm|Baddbmm|Addmv|Mv)'
            || 'Backward[0-9]*)') AS own
    FROM ranges AS r LEFT JOIN device AS d USING (range_id)
    WHERE r.kind = 'operator' AND r.duration_ns >= 0
), up AS (
    SELECT range_id, op_parent_id, self_ns, tensor_ns, unknown_ns, own, false AS inside FROM operators WHERE self_ns > 0 OR own
    UNION ALL
    SELECT o.range_id, o.op_parent_id, u.self_ns, u.tensor_ns, u.unknown_ns, u.own, true
    FROM up AS u JOIN operators AS o ON o.range_id = u.op_parent_id
), total AS (
    SELECT range_id, TRY_CAST(sum(self_ns) AS BIGINT) AS device_ns, TRY_CAST(sum(tensor_ns) AS BIGINT) AS tensor_ns, TRY_CAST(sum(unknown_ns) AS BIGINT) AS unknown_ns,
        bool_or(own) AS eligible, bool_or(own AND inside) AS eligible_inside
    FROM up GROUP BY range_id
)
SELECT o.run, o.tool, o.profile_id, o.process_id, o.range_id, o.name, o.shapes, o.duration_ns AS host_total_ns,
    o.duration_ns - coalesce(h.inner_ns, 0) AS host_self_ns, o.self_ns AS device_self_ns,
    coalesce(t.device_ns, 0) AS device_total_ns,
    o.tensor_ns AS tensor_self_ns, coalesce(t.tensor_ns, 0) AS tensor_total_ns, o.unknown_ns AS unknown_self_ns,
    coalesce(t.unknown_ns, 0) AS unknown_total_ns, coalesce(t.eligible, false) AS eligible, o.kernel_ns AS kernel_self_ns,
    CASE WHEN o.own AND NOT coalesce(t.eligible_inside, false) THEN o.kernel_ns ELSE 0 END AS eligible_ns
FROM operators AS o LEFT JOIN host AS h USING (range_id) LEFT JOIN total AS t USING (range_id);
