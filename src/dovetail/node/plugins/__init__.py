"""The plugins that ship with the agent: cpu, memory and nic. What they do for whom is data (roles).

Rules are pure: `assign` picks CPUs, `pools` divides them, `*_state` decide with a state in and a
new state out. `serving` and the modules named after the resources put them on a socket.
"""
