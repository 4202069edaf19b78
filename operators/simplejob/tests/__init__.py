"""Tests of the operator SimpleJob."""
