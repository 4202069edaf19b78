"""The same small operator, written for each framework that `bench.operator` compares."""
