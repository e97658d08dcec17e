"""Grading that can be trusted: answers run apart, their values come back as data."""
