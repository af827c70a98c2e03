"""Plan execution: warnings, checks, statements one by one, verification and records."""
