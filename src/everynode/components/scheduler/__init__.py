"""The scheduler: filters, resources and preemption."""
