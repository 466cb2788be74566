-- The links of each GPU to its peers and to the host, by the datasheet of its product name. A slice of a GPU (MIG) has none of its own.
-- @scope profile
-- @requires devices
-- @column profile_id        Profile.
-- @column device_id         The physical GPU.
-- @column link_bytes_per_s  What it sends to its peers on one host per second, at most, over all of its links; NULL where unknown.
-- @column link_ranks        How many ranks it takes to use all of them.
-- @column pcie_bytes_per_s  What PCIe carries per second in each direction, over 16 lanes; NULL where unknown.
CREATE VIEW _device_links AS
SELECT d.profile_id, d.device_id, any_value(g.link_bytes_per_s) AS link_bytes_per_s, any_value(g.link_ranks) AS link_ranks,
    any_value(g.pcie_bytes_per_s) AS pcie_bytes_per_s
FROM devices AS d JOIN gpu_peaks AS g ON regexp_matches(d.name, g.pattern, 'i') AND NOT regexp_matches(d.name, 'MIG', 'i')
WHERE d.device_id IS NOT NULL
GROUP BY d.profile_id, d.device_id
HAVING count(DISTINCT g.name) = 1;
