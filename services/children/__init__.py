"""Work in child processes that may crash, hang or eat memory without taking their caller down."""
