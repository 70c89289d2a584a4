"""What several tests share: projects, command lines, tables and worlds made for tests."""
