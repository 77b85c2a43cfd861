// Placeholder until the floor is laid.
