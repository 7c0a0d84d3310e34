BROKER_API_VERSIONS: dict[tuple[int, ...], dict[int, tuple[int, int]]]
