"""What the server is that learners' processes are forked from: it imports torch, and inherits.

Should an answer end its warden, what it has started becomes the server's, where `Sandbox` finds it.
"""

import warnings

from . import learner

# The server is told of the end of processes that it did not start itself.
warnings.filterwarnings("ignore", message="forkserver: waitpid")
learner.inherit_orphans()
