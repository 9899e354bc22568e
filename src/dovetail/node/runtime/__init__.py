"""Back ends to the container runtime: a client and a proxy of CRI, and a plugin of NRI."""
