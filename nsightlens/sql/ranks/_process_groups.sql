-- The process groups of each process and what they are for, by what the program calls them: Megatron's names
-- (TENSOR_MODEL_PARALLEL_GROUP), those of PyTorch's device meshes (mesh_tp, mesh_dp_shard). The last word fits: an
-- EXPERT_DATA_PARALLEL_GROUP is an expert group, a group of all data-parallel and tensor-parallel ranks (TENSOR_AND_DATA) none.
-- @scope profile
-- @requires process_groups
-- @column run           Run.
-- @column tool          kineto.
-- @column profile_id    Profile.
-- @column process_id    OS process.
-- @column window_index  Capture window of the process.
-- @column group_name    Process group, as in `kernels`.
-- @column description   What the program calls it; NULL where it says nothing.
-- @column group_size    Its ranks.
-- @column group_rank    Place of the rank among them.
-- @column kind          expert, pipeline, tensor, context or data; NULL where its description names none, or several.
CREATE VIEW _process_groups AS
WITH words AS (
    SELECT *, list_filter(regexp_split_to_array(lower(description), '[^a-z0-9]+'), lambda word : word <> '') AS words
    FROM process_groups
)
SELECT run, tool, profile_id, process_id, window_index, group_name, description, group_size, group_rank,
    CASE
        WHEN list_contains(words, 'and') OR list_contains(words, 'embedding') THEN NULL
        WHEN list_has_any(words, ['expert', 'ep', 'moe']) THEN 'expert'
        WHEN list_has_any(words, ['pipeline', 'pp', 'pipe']) THEN 'pipeline'
        WHEN list_has_any(words, ['tensor', 'tp']) THEN 'tensor'
        WHEN list_has_any(words, ['context', 'cp', 'sequence', 'sp']) AND NOT list_has_any(words, ['data', 'dp']) THEN 'context'
        WHEN list_has_any(words, ['data', 'dp', 'fsdp', 'ddp']) THEN 'data'
    END AS kind
FROM words;
