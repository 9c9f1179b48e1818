"""The hot path of views: archived transactions in new places, with the events around them that newer replicas need."""
