"""The warm server: interpreters that have imported everything, forked in advance, one for each request.

``server`` keeps them, ``worker`` is one of them, ``client`` is what the command ``jacli`` does instead of computing,
and ``meeting`` is what both sides agree on: the place of the socket, the messages, who may talk to whom.
A convenience on one machine for one user; never a network service. See docs/serve.md.
"""
