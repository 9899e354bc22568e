"""The CPU plugin: pools that containers share, and CPUs of their own."""
