"""What the figures in the README come from: nsightlens against its peers, in the same run, on the same machine."""
