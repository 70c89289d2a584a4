"""Mutations of what a user gives: each is read as before, or refused in one true line.

A family (`families.py`) has a reader, which is a public function of the library, and draws
mutations of a valid input. Each mutation says what it must come to: the same content in another
notation must give the same result, or a refusal; damaged content must be refused.
"""
