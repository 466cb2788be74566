-- How the traffic of each memory level is counted: every definition that ncu versions and people have used, as rows.
-- @scope run
-- @column level       dram, l2 or l1.
-- @column preference  The definition with the least number is taken, then the form with the least number.
-- @column definition  Name of the definition; different names count different bytes.
-- @column form        count (bytes), rate (bytes per second) or peak (bytes per cycle of the level's clock).
-- @column variant     Metrics of one variant add up.
-- @column metric      ncu metric.
-- @column factor      Bytes per unit of the metric.
-- @column parts       Metrics that the variant needs.
CREATE VIEW _roofline_traffic_term AS
SELECT * FROM (VALUES
    ('dram', 1, 'dram__bytes', 'count', 1, 'dram__bytes.sum', 1, 1),
    ('dram', 1, 'dram__bytes', 'count', 2, 'dram__bytes_read.sum', 1, 2),
    ('dram', 1, 'dram__bytes', 'count', 2, 'dram__bytes_write.sum', 1, 2),
    ('dram', 1, 'dram__bytes', 'count', 3, 'dram__bytes_op_read.sum', 1, 2),
    ('dram', 1, 'dram__bytes', 'count', 3, 'dram__bytes_op_write.sum', 1, 2),
    ('dram', 1, 'dram__bytes', 'count', 4, 'dram__sectors.sum', 32, 1),
    ('dram', 1, 'dram__bytes', 'count', 5, 'dram__sectors_read.sum', 32, 2),
    ('dram', 1, 'dram__bytes', 'count', 5, 'dram__sectors_write.sum', 32, 2),
    ('dram', 1, 'dram__bytes', 'rate', 1, 'dram__bytes.sum.per_second', 1, 1),
    ('dram', 1, 'dram__bytes', 'rate', 2, 'dram__bytes_read.sum.per_second', 1, 2),
    ('dram', 1, 'dram__bytes', 'rate', 2, 'dram__bytes_write.sum.per_second', 1, 2),
    ('dram', 1, 'dram__bytes', 'peak', 1, 'dram__bytes.sum.peak_sustained', 1, 1),
    ('l2', 1, 'lts__lts2xbar x 32', 'count', 1, 'lts__lts2xbar_cycles_active.sum', 32, 1),
    ('l2', 1, 'lts__lts2xbar x 32', 'count', 2, 'derived__lts__lts2xbar_bytes.sum', 1, 1),
    ('l2', 1, 'lts__lts2xbar x 32', 'rate', 1, 'derived__lts__lts2xbar_bytes.sum.per_second', 1, 1),
    ('l2', 1, 'lts__lts2xbar x 32', 'rate', 2, 'lts__lts2xbar_cycles_active.sum.per_second', 32, 1),
    ('l2', 1, 'lts__lts2xbar x 32', 'peak', 1, 'derived__lts__lts2xbar_bytes.sum.peak_sustained', 1, 1),
    ('l2', 1, 'lts__lts2xbar x 32', 'peak', 2, 'lts__lts2xbar_cycles_active.sum.peak_sustained', 32, 1),
    ('l2', 2, 'l1tex__m_xbar2l1tex_read_bytes', 'count', 1, 'l1tex__m_xbar2l1tex_read_bytes.sum', 1, 1),
    ('l2', 2, 'l1tex__m_xbar2l1tex_read_bytes', 'rate', 1, 'l1tex__m_xbar2l1tex_read_bytes.sum.per_second', 1, 1),
    ('l2', 2, 'l1tex__m_xbar2l1tex_read_bytes', 'peak', 1, 'l1tex__m_xbar2l1tex_read_bytes.sum.peak_sustained', 1, 1),
    ('l2', 3, 'lts__t_bytes', 'count', 1, 'lts__t_bytes.sum', 1, 1),
    ('l2', 3, 'lts__t_bytes', 'count', 2, 'lts__t_sectors.sum', 32, 1),
    ('l2', 3, 'lts__t_bytes', 'rate', 1, 'lts__t_bytes.sum.per_second', 1, 1),
    ('l2', 3, 'lts__t_bytes', 'peak', 1, 'lts__t_bytes.sum.peak_sustained', 1, 1),
    ('l2', 4, 'lts__t_sectors of read, write, atom, red x 32', 'count', 1, 'lts__t_sectors_op_read.sum', 32, 4),
    ('l2', 4, 'lts__t_sectors of read, write, atom, red x 32', 'count', 1, 'lts__t_sectors_op_write.sum', 32, 4),
    ('l2', 4, 'lts__t_sectors of read, write, atom, red x 32', 'count', 1, 'lts__t_sectors_op_atom.sum', 32, 4),
    ('l2', 4, 'lts__t_sectors of read, write, atom, red x 32', 'count', 1, 'lts__t_sectors_op_red.sum', 32, 4),
    ('l1', 3, 'l1tex__lsu_writeback x 128', 'count', 1, 'l1tex__lsu_writeback_active.sum', 128, 1),
    ('l1', 3, 'l1tex__lsu_writeback x 128', 'rate', 1, 'l1tex__lsu_writeback_active.sum.per_second', 128, 1),
    ('l1', 3, 'l1tex__lsu_writeback x 128', 'peak', 1, 'l1tex__lsu_writeback_active.sum.peak_sustained', 128, 1),
    ('l1', 2, 'l1tex__lsu_writeback_mem_lg x 128', 'count', 1, 'l1tex__lsu_writeback_active_mem_lg.sum', 128, 1),
    ('l1', 2, 'l1tex__lsu_writeback_mem_lg x 128', 'rate', 1, 'derived__l1tex__lsu_writeback_bytes_mem_lg.sum.per_second', 1, 1),
    ('l1', 2, 'l1tex__lsu_writeback_mem_lg x 128', 'rate', 2, 'l1tex__lsu_writeback_active_mem_lg.sum.per_second', 128, 1),
    ('l1', 2, 'l1tex__lsu_writeback_mem_lg x 128', 'peak', 1, 'derived__l1tex__lsu_writeback_bytes_mem_lg.sum.peak_sustained', 1, 1),
    ('l1', 2, 'l1tex__lsu_writeback_mem_lg x 128', 'peak', 2, 'l1tex__lsu_writeback_active_mem_lg.sum.peak_sustained', 128, 1),
    ('l1', 1, 'l1tex__lsu_writeback_mem_lgds x 128', 'count', 1, 'l1tex__lsu_writeback_active_mem_lgds.sum', 128, 1),
    ('l1', 1, 'l1tex__lsu_writeback_mem_lgds x 128', 'rate', 1, 'derived__l1tex__lsu_writeback_bytes_mem_lgds.sum.per_second', 1, 1),
    ('l1', 1, 'l1tex__lsu_writeback_mem_lgds x 128', 'rate', 2, 'l1tex__lsu_writeback_active_mem_lgds.sum.per_second', 128, 1),
    ('l1', 1, 'l1tex__lsu_writeback_mem_lgds x 128', 'peak', 1, 'derived__l1tex__lsu_writeback_bytes_mem_lgds.sum.peak_sustained', 1, 1),
    ('l1', 1, 'l1tex__lsu_writeback_mem_lgds x 128', 'peak', 2, 'l1tex__lsu_writeback_active_mem_lgds.sum.peak_sustained', 128, 1),
    ('l1', 4, 'l1tex__t_bytes', 'count', 1, 'l1tex__t_bytes.sum', 1, 1),
    ('l1', 4, 'l1tex__t_bytes', 'rate', 1, 'l1tex__t_bytes.sum.per_second', 1, 1),
    ('l1', 4, 'l1tex__t_bytes', 'peak', 1, 'l1tex__t_bytes.sum.peak_sustained', 1, 1)
) AS term(level, preference, definition, form, variant, metric, factor, parts);
