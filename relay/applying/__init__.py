"""How far replicas have applied what they were sent: asked from those whose account is in relay.toml."""
