"""python -m tests.demo.waiting: a command that does not end."""

import time

if __name__ == "__main__":
    time.sleep(600)
