"""Faults on purpose: a capture, its server and its network are broken while a witness writes down what is true."""
