"""What lies in the database: the session protocol, and every statement that reads or writes dbext's own tables."""
