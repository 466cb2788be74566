"""ncu's own report (.ncu-rep, also under gzip or zstd: .ncu-repz) -> a page as the CSV pages are, but with exact values.

A report is a list of blocks, each a header and a payload (`stream`, `blocks`); headers and payloads are messages of the protocol
buffers' wire format (`wire`). One block holds one launch (`results`); all launches together are a `Page` (`page`), which the
reader of CSV pages makes rows of: a report and its pages are one profile, and one way leads from them to the tables.

Never read: environments, working folders, the host's name and addresses, source files, cubins and call stacks. Of the command
line three options of ncu are taken, and of the executable's path its last part.
"""
