"""The relay: asyncio shells around the protocol."""
